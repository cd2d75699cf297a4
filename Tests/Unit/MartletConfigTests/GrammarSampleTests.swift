import MartletCore
import MartletJSON
import Testing

@testable import MartletConfig

/// Every supported key, with a value other than the default.
let fullSample = """
    version: 1
    server:
      listen:
        - address: 127.0.0.1:8081
          reuse_port: true
          http2: false
          proxy_protocol: true
          redirect_to_https: 8443
        - address: "[::1]:8443"
          tls:
            certificate_file: c.pem
            key_file: k.pem
            certificates: [{ certificate_file: /etc/d.pem, key_file: e.pem }]
            min_version: "1.3"
            cipher_suites: TLS_AES_256_GCM_SHA384
            client_ca_file: ca.pem
            client_auth: optional
            hsts: 365d
        - { address: unix:/run/martlet.sock, owner: www-data, group: "33", mode: "0660" }
        - { address: fd:3, redirect_to_https: true }
      workers: 3
      trusted_proxies: [10.0.0.0/8, fd00::/8, 192.0.2.7]
      limits: { header_bytes: 8KiB, header_fields: 50, token_bytes: 4KiB, body_bytes: 1MiB, body_min_rate: 0B, connections: 7, connections_per_address: 5, rate_entries: 64 }
      paths: { encoded_slash: keep, encoded_percent: keep }
      timeouts: { request_head: 1s, tls_handshake: 2s, idle: 3s, body_idle: 4s, drain: 0s }
      overload: { loop_delay: 50ms, memory: 80% }
      http2: { max_concurrent_streams: 7, max_resets_per_10s: 8, initial_window: 1MiB }
    admin: { address: 127.0.0.1:9902 }
    log: { level: warning, format: json, subject: hash, subject_key: planted0123456789 }
    store: { url: "redis://:hunter2@127.0.0.1:6379/0", key_prefix: "gw:", on_error: deny, replicas: keys }
    accounts: { url: "postgresql://martlet:hunter2@127.0.0.1/martlet" }
    sessions:
      access_ttl: 5m
      refresh_ttl: 30d
      idle_timeout: 7d
      refresh_reuse_grace: 0s
      max_per_subject: 3
      cache_ttl: 0s
      dpop: required
      path: /v1/sign-in
      hosts: [API.example.com, "*.example.org"]
      cors: { origins: [https://App.example.com:443, "http://localhost:3000"] }
      limits: { login: [logins] }
    assertion:
      header: X-Gateway-Statement
      issuer: https://gw.example.com
      audience: everyone
      ttl: 30s
      key: test-key
      verify_key_files: []
    webhooks:
      - name: backend
        url: https://api.example.com/hooks?a=b
        secret: planted
        events: [account.created, "identity.*"]
        timeout: 2s
        max_age: 1d
    outbox: { max_rows: 5000 }
    well_known:
      apple_app_site_association: { webcredentials: [ABCDE12345.com.example.app] }
      change_password: https://example.com/account/password
    forward_auth: { deny: 403, browser: true }
    jwks: { ttl: 2h, max_stale: 0s, unknown_kid_cooldown: 30s, negative_ttl: 1m, fetch_timeout: 250ms }
    plugins: []
    providers:
      apple: { kind: apple, audiences: [com.example.app] }
      other: { kind: greeting }
    upstreams:
      api:
        endpoints: [http://127.0.0.1:9000, http://app.example.com, unix:/run/app.sock, builtin:echo, "http://[::1]:81"]
        timeouts: { connect: 1s, response_head: 2s, idle: 3s }
        host: endpoint
        balance: hash:X-Shard
      fixed: { endpoints: [builtin:echo], host: Internal.example.com:8080, balance: round_robin }
      far:
        endpoints: [https://app.example.com, "https://[::1]:8443"]
        protocol: h2
        tls: { ca_file: ca.pem, server_name: App.example.com, certificate_file: c.pem, key_file: k.pem }
      plain: { endpoints: [h2c://app.example.com, "h2c://[::1]:81"] }
      behind: { endpoints: [http://127.0.0.1:9000], proxy_protocol: v2 }
    rate_limits:
      per_person: { key: subject, rate: 100/s, burst: 200 }
      per_address: { key: [address, "header:X-Key", host, route, provider], rate: 20/m, shared: true, on_store_error: deny }
      logins: { key: address, rate: 30/m }
    routes:
      - name: public
        match: { path: /public/** }
        auth: none
        upstream: fixed
      - name: api
        match: { hosts: [API.example.com, "*.example.org"], path: /v1/**, methods: [GET, POST] }
        auth: { providers: [apple], mode: optional, credentials: [session], max_age: 1h }
        authorize:
          - { claim: email_verified, equals: true }
          - { claim: level, in: [1, two, "3"], not: true }
          - any:
              - { claim: roles, contains: admin }
              - { claim: name, matches: "A.*" }
              - { claim: email, exists: false }
          - { claim: age, gt: 17.5 }
          - { claim: age, lt: 100 }
          - { max_age: 10m }
          - { acr: "urn:example:mfa" }
        headers:
          set:
            X-User-Id: { attribute: subject }
            X-User-Roles: { claim: roles, join: ",", default: "", encode: ascii }
          remove: [X-Internal-Debug]
        rewrite: { strip_prefix: /v1 }
        limits: { body_bytes: unlimited, rate: [per_person, per_address], announce: true, concurrency: 100 }
        upgrade: { websocket: false, protocols: [Acme/2], close_on_expiry: 30s, idle: 1m, max_connection_age: 1h }
        forward_credentials: true
        upstream: api
      - { name: pattern, match: { path_regex: "/u/[0-9]+" }, upgrade: [websocket, acme], upstream: api }
      - { name: far, match: { path: /far }, auth: none, upgrade: [], upstream: far }
      - { name: plain, match: { path: /plain }, auth: none, upgrade: { close_on_expiry: false }, upstream: plain }
      - { name: behind, match: { path: /behind }, auth: none, upstream: behind }
      - name: ruled
        match:
          path: /ruled/**
          headers: [{ name: X-Canary, equals: 1 }, { name: Cookie, present: true }]
          query: [{ name: v, prefix: "2" }, { name: w, matches: "[0-9]+" }]
        auth: { providers: [apple] }
        headers:
          set: { X-Env: { value: prod } }
          response: { set: { Cache-Control: no-store }, remove: [Server] }
        rewrite: { strip_prefix: /ruled, regex: "/u/(.*)", to: "/u?id=$1", add_prefix: /api, host: Internal.example:81 }
        timeout: 30s
        cors:
          origins: [https://App.example.com:443, "https://*.Example.org", "*"]
          methods: [GET, PUT]
          headers: [Authorization]
          expose: [X-Request-Id]
          credentials: false
          max_age: 10m
        upstream: api
      - name: canary
        match: { path: /canary/** }
        split: [{ upstream: api, weight: 95 }, { upstream: fixed, weight: 0 }]
        mirror: { upstream: plain, percent: 0.5 }
      - { name: old, match: { path: /old/** }, auth: none, redirect: { to: "https://www.example.com$path?$query", status: 308 } }
      - { name: closed, match: { path: /beta/** }, respond: { status: 503, body: "<p>soon</p>", content_type: text/html } }
    """

@Suite struct `The whole grammar` {
    @Test func `is decoded into the model`() throws {
        let (decoded, diagnostics) = load(fullSample)
        #expect(diagnostics.description == "")
        let configuration = try #require(decoded)
        let server = configuration.server
        #expect(
            server.listeners.map(\.address.value) == [
                .ip(host: "127.0.0.1", port: 8081), .ip(host: "::1", port: 8443), .unix(path: "/run/martlet.sock"),
                .descriptor(3),
            ])
        #expect(server.listeners.map(\.reusePort) == [true, false, false, false])
        #expect(server.workers == 3)
        #expect(server.trustedProxies.map(\.prefixLength) == [104, 8, 128])
        #expect(server.trustedProxies[2].network == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 7])
        #expect(server.limits.bodyBytes == 1_048_576 && server.limits.bodyMinimumRate == 0)
        #expect(server.limits.headerBytes == 8192 && server.limits.headerFields == 50)
        #expect(server.limits.tokenBytes == 4096)
        #expect(server.limits.connections == 7 && server.limits.connectionsPerAddress == 5)
        #expect(server.paths.keepsEncodedSlash && server.paths.keepsEncodedPercent)
        #expect(server.timeouts.drain == .zero && server.timeouts.idle == .seconds(3))
        #expect(configuration.admin?.address.value == .ip(host: "127.0.0.1", port: 9902))
        #expect(configuration.log.level == .warning && configuration.log.format == .json)
        #expect(configuration.store.onError == .deny && configuration.store.keyPrefix == "gw:")
        #expect(configuration.store.replicas == .keys)
        #expect(configuration.store.url.value == "redis://:hunter2@127.0.0.1:6379/0")
        #expect(configuration.jwks.maximumStale == .zero && configuration.jwks.fetchTimeout == .milliseconds(250))
        #expect(configuration.providers.map(\.name.value) == ["apple", "other"])
        #expect(configuration.providers[0].block(nil).entries?.map(\.key.value) == ["audiences"])
    }

    @Test func `has sign-in`() throws {
        let configuration = try #require(load(fullSample).configuration)
        #expect(configuration.accounts?.url.value == "postgresql://martlet:hunter2@127.0.0.1/martlet")
        var sessions = SessionsConfiguration()
        (sessions.accessTTL, sessions.refreshTTL) = (.seconds(300), .seconds(30 * 86_400))
        (sessions.idleTimeout, sessions.refreshReuseGrace) = (.seconds(7 * 86_400), .zero)
        (sessions.maximumPerSubject, sessions.cacheTTL, sessions.path) = (3, .zero, "/v1/sign-in")
        sessions.dpop = .required
        sessions.hosts = ["api.example.com", "*.example.org"]
        sessions.corsOrigins = ["https://app.example.com", "http://localhost:3000"]
        sessions.loginLimits = configuration.sessions.loginLimits
        #expect(configuration.sessions == sessions)
        let assertion = try #require(configuration.assertion)
        #expect(assertion.header.value == "X-Gateway-Statement" && assertion.issuer == "https://gw.example.com")
        #expect(assertion.audience == "everyone" && assertion.ttl == .seconds(30) && assertion.otherKeys.isEmpty)
        #expect(assertion.key.value.withBytes { $0 } == Array("test-key".utf8))
        #expect(configuration.wellKnown.webCredentialApps == ["ABCDE12345.com.example.app"])
        #expect(configuration.wellKnown.changePasswordURL == "https://example.com/account/password")
        #expect(configuration.server.forwardAuth.deniesAlike)
        #expect(configuration.server.forwardAuth.redirectsBrowsers)
        #expect(configuration.webhooks.count == 1 && configuration.outbox.maximumRows == 5000)
        let webhook = configuration.webhooks[0]
        #expect(webhook.name.value == "backend" && webhook.url.value.text == "https://api.example.com/hooks?a=b")
        #expect(webhook.events.map(\.value) == ["account.created", "identity.*"])
        #expect(webhook.timeout == .seconds(2) && webhook.maximumAge == .seconds(86_400))
        #expect(webhook.secret.value.withBytes { $0 } == Array("planted".utf8))
    }

    @Test func `has upstreams`() throws {
        let upstreams = try #require(load(fullSample).configuration).upstreams
        #expect(upstreams.map(\.name.value) == ["api", "fixed", "far", "plain", "behind"])
        #expect(
            upstreams[0].endpoints.map(\.value) == [
                .http(host: "127.0.0.1", port: 9000), .http(host: "app.example.com", port: 80),
                .unix(path: "/run/app.sock"), .echo,
                .http(host: "::1", port: 81),
            ])
        #expect(upstreams[0].host == .endpoint && upstreams[0].balance == .hash(header: "x-shard"))
        #expect(upstreams[1].host == .fixed("internal.example.com:8080") && upstreams[1].balance == .roundRobin)
    }

    @Test func `has routes`() throws {
        let routes = try #require(load(fullSample).configuration).routes
        guard case .none = routes[0].authentication else {
            Issue.record("public is not public")
            return
        }
        let api = routes[1]
        #expect(api.hosts.map(\.value) == ["api.example.com", "*.example.org"])
        guard case .glob(let glob) = api.path, case .optional(providers: ["apple"]) = api.authentication else {
            Issue.record("\(api)")
            return
        }
        #expect(glob.value == "/v1/**" && api.methods == ["GET", "POST"])
        #expect(api.maximumAge == .seconds(3600) && api.credentials == .session)
        let requirement = AuthenticationRequirement(
            maximumAge: .init(value: .seconds(600), index: 5), level: .init(value: "urn:example:mfa", index: 6))
        #expect(api.authenticationRequirement == requirement)
        #expect(routes[0].credentials == [.session, .direct] && routes[2].credentials == [.session, .direct])
        #expect(api.authorize.count == 5)
        guard case .claim("level", .isIn(let literals), inverted: true, orAbsent: false) = api.authorize[1] else {
            Issue.record("\(api.authorize[1])")
            return
        }
        #expect(literals == [.number(1), .text("two"), .text("3")])
        #expect(api.setHeaders?.map(\.name.value) == ["X-User-Id", "X-User-Roles"])
        #expect(
            api.setHeaders?[1].join == "," && api.setHeaders?[1].fallback == "" && api.setHeaders?[1].encoding == .ascii
        )
        #expect(api.removeHeaders == ["x-internal-debug"])
        #expect(api.stripPrefix?.value == "/v1" && api.bodyLimit == .unlimited && api.forwardsCredentials)
        guard case .required(providers: ["apple", "other"]) = routes[2].authentication, case .regex = routes[2].path
        else {
            Issue.record("\(routes[2])")
            return
        }
        #expect(routes[2].setHeaders == nil)
    }

    @Test func `has routes with rules for requests and responses`() throws {
        let route = try #require(load(fullSample).configuration?.routes.first { $0.name.value == "ruled" })
        #expect(route.conditions.map(\.name.value) == ["X-Canary", "Cookie", "v", "w"])
        #expect(route.conditions.map(\.source) == [.header, .header, .query, .query])
        guard case .equals("1") = route.conditions[0].test, case .present(true) = route.conditions[1].test,
            case .prefix("2") = route.conditions[2].test, case .matches(let pattern) = route.conditions[3].test
        else {
            Issue.record("\(route.conditions)")
            return
        }
        #expect(pattern.value == "[0-9]+" && route.timeout == .seconds(30) && route.stripPrefix?.value == "/ruled")
        #expect(route.rewrite.expression?.value == "/u/(.*)" && route.rewrite.replacement?.value == "/u?id=$1")
        #expect(route.rewrite.addPrefix?.value == "/api" && route.rewrite.host == "internal.example:81")
        guard case .constant("prod")? = route.setHeaders?.first?.value else {
            Issue.record("\(route.setHeaders ?? [])")
            return
        }
        #expect(route.responseHeaders.set == [.init(name: "Cache-Control", value: "no-store")])
        #expect(route.responseHeaders.remove == ["server"])
        var crossOrigin = CrossOriginConfiguration(origins: [
            .exact("https://app.example.com"), .subdomains(prefix: "https://", suffix: ".example.org"), .any,
        ])
        crossOrigin.methods = ["GET", "PUT"]
        (crossOrigin.headers, crossOrigin.exposed) = (["Authorization"], ["X-Request-Id"])
        crossOrigin.maximumAge = .seconds(600)
        #expect(route.crossOrigin == crossOrigin)
    }

    @Test func `has a route with several upstreams`() throws {
        let route = try #require(load(fullSample).configuration?.routes.first { $0.name.value == "canary" })
        #expect(route.upstream == nil && route.response == nil)
        #expect(route.split.map(\.upstream.value) == ["api", "fixed"] && route.split.map(\.weight) == [95, 0])
    }

    @Test func `has a route whose requests are copied`() throws {
        let configuration = try #require(load(fullSample).configuration)
        let mirrored = configuration.routes.filter { $0.mirror != nil }
        #expect(mirrored.map(\.name.value) == ["canary"])
        #expect(mirrored.first?.mirror?.upstream.value == "plain")
        #expect(mirrored.first?.mirror?.percentage == SamplePercentage(millionths: 5000))
    }

    @Test func `has routes with responses of their own`() throws {
        let routes = try #require(load(fullSample).configuration).routes.suffix(2)
        #expect(routes.map { $0.upstream == nil } == [true, true])
        guard case .redirect(let redirect)? = routes.first?.response, case .fixed(let fixed)? = routes.last?.response
        else {
            Issue.record("\(routes)")
            return
        }
        #expect(redirect.target.value == "https://www.example.com$path?$query" && redirect.status == 308)
        #expect(fixed.status == 503 && fixed.contentType == "text/html" && fixed.body == Array("<p>soon</p>".utf8))
    }
}

let minimalSample = """
    version: 1
    upstreams: { echo: { endpoints: [builtin:echo] } }
    routes: [{ name: all, auth: none, upstream: echo }]
    """

@Suite struct `A minimal configuration` {
    @Test func `has every default`() throws {
        let (decoded, diagnostics) = load(minimalSample)
        #expect(diagnostics.description == "")
        let configuration = try #require(decoded)
        #expect(configuration.server.listeners.map(\.address.value) == [.ip(host: "127.0.0.1", port: 8080)])
        #expect(configuration.server.workers == nil)
        #expect(configuration.server.limits == Limits() && configuration.server.timeouts == ServerTimeouts())
        #expect(configuration.admin?.address.value == .ip(host: "127.0.0.1", port: 9901))
        #expect(configuration.store.url.value == "memory:" && configuration.store.onError == .cached)
        #expect(configuration.store.replicas == .never)
        #expect(configuration.accounts?.url.value == nil && configuration.assertion?.issuer == nil)
        #expect(configuration.sessions == SessionsConfiguration())
        #expect(configuration.wellKnown == WellKnownConfiguration())
        #expect(configuration.jwks == JWKSConfiguration() && configuration.log == LogConfiguration())
        #expect(configuration.routes[0].setHeaders == nil && configuration.routes[0].bodyLimit == .inherited)
    }

    @Test func `can disable the admin listener`() throws {
        #expect(try #require(load(minimalSample + "\nadmin: off").configuration).admin == nil)
    }
}
