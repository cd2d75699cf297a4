import MartletConfig
import MartletCore
import Testing

@Suite struct `Libraries of a configuration file` {
    static let text = """
        version: 1
        plugins: [{ path: lib/a.so }, { path: /b.so }]
        providers: { line: { kind: line } }
        upstreams: { echo: { endpoints: [builtin:echo] } }
        routes: [{ name: all, auth: { providers: [line] }, match: { path: /** }, upstream: echo }]
        """

    static func codes(_ loader: AvailableKinds.Loader?) -> [String] {
        GatewayConfiguration.decode(
            text: Array(text.utf8), file: "/etc/c.yaml", environment: { _ in nil }, knownKinds: ["apple"],
            loadPlugins: loader
        ).diagnostics.errors.map(\.code.rawValue)
    }

    @Test func `bring the kinds that their loader returns`() {
        var paths: [String] = []
        let codes = Self.codes { plugins, _ in
            paths = plugins.map(\.path.value.text)
            return ["apple", "line"]
        }
        #expect(codes.isEmpty && paths == ["/etc/lib/a.so", "/b.so"])
        #expect(Self.codes { _, _ in ["apple"] } == ["config.unknown_kind"])
    }

    @Test func `that cannot be loaded are the only error`() {
        let codes = Self.codes { plugins, diagnostics in
            diagnostics.error("plugin.stamp", at: plugins[0].path.location, "is another one")
            return ["apple"]
        }
        #expect(codes == ["plugin.stamp"])
    }

    @Test func `allow any kind where they are not loaded`() {
        #expect(Self.codes(nil).isEmpty)
    }
}
