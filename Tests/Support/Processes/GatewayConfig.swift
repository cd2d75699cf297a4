/// Writes a `config.yaml` for a test: one public listener, one admin listener, one upstream `api`, routes as given.
package struct GatewayConfig {
    /// Blocks of YAML, each without indentation; `nil` leaves the block out.
    package var listen = "- address: 127.0.0.1:0"
    package var server = ""
    package var admin: String? = "address: 127.0.0.1:0\nsocket: unix:\(UInt32.random(in: 0 ... .max)).sock"
    package var providers = ""
    package var upstreams: String
    package var routes: String
    /// Whole top-level blocks.
    package var more = ""

    /// - Parameters:
    ///   - endpoints: of the upstream `api`.
    ///   - upstream: more keys of the upstream `api`.
    package init(
        endpoints: [String], upstream: String = "", providers: String = "", server: String = "",
        routes: String = GatewayConfig.open
    ) {
        let list = endpoints.map { "\"\($0)\"" }.joined(separator: ", ")
        upstreams = "api:\n" + indent("endpoints: [\(list)]\n\(upstream)")
        self.providers = providers
        self.server = server
        self.routes = routes
    }

    /// One route that lets everything through.
    package static let open = "- { name: open, match: { path: /** }, auth: none, upstream: api }"

    /// One route that wants to know who calls.
    package static let closed = """
        - { name: public, match: { path: /public/** }, auth: none, upstream: api }
        - { name: maybe, match: { path: /maybe/** }, auth: { providers: [apple], mode: optional }, upstream: api }
        - { name: closed, match: { path: /** }, auth: { providers: [apple] }, upstream: api }
        """

    package var text: String {
        var text = "version: 1\nserver:\n  listen:\n" + indent(listen, by: 4) + indent(server)
        if let admin { text += "admin:\n" + indent(admin) }
        text += "log: { level: debug, format: json }\n"
        if !providers.isEmpty { text += "providers:\n" + indent(providers) }
        text += "upstreams:\n" + indent(upstreams) + "routes:\n" + indent(routes)
        return text + more + (more.hasSuffix("\n") || more.isEmpty ? "" : "\n")
    }
}

private func indent(_ text: String, by count: Int = 2) -> String {
    let margin = String(repeating: " ", count: count)
    return text.split(separator: "\n", omittingEmptySubsequences: true).map { "\(margin)\($0)\n" }.joined()
}
