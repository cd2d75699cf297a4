/// The configuration that `martlet demo` runs with; never in a file.
enum DemoConfiguration {
    static let audience = "com.example.app"

    /// - Parameters:
    ///   - listen: where clients connect to.
    ///   - apple: the base URL of the pretended Apple.
    static func text(listen: String, apple: String) -> String {
        """
        version: 1
        server:
          listen: [{ address: "\(listen)" }]
          timeouts: { drain: 5s }
        admin: { address: "127.0.0.1:0" }
        log: { level: error }
        providers:
          apple: { kind: apple, audiences: [\(audience)], base_url: "\(apple)" }
        upstreams:
          echo: { endpoints: ["builtin:echo"] }
        routes:
          - name: public
            match: { path: /public/** }
            auth: none
            upstream: echo
          - name: hello
            match: { path: /hello/** }
            auth: { providers: [apple], mode: optional }
            upstream: echo
          - name: staff
            match: { path: /v1/staff/** }
            auth: { providers: [apple] }
            authorize:
              - { claim: email_verified, equals: true }
              - { claim: email, matches: '[^@]+@example\\.com' }
            headers: { set: { X-User-Id: { attribute: subject }, X-User-Email: { claim: email } } }
            rewrite: { strip_prefix: /v1 }
            upstream: echo
          - name: api
            match: { path: /v1/** }
            auth: { providers: [apple] }
            headers: { set: { X-User-Id: { attribute: subject }, X-User-Provider: { attribute: provider } } }
            rewrite: { strip_prefix: /v1 }
            upstream: echo

        """
    }
}
