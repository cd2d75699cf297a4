import MartletCore
import MartletTesting
import Testing

@testable import MartletConfig

/// `outbound:`, and the same keys of a provider.
@Suite struct `Outbound calls in the configuration` {
    private static let authority = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"

    private func read(_ block: String) -> (outbound: OutboundConfiguration?, lines: [String]) {
        let (configuration, diagnostics) = load("\(minimalFile)outbound: \(block)\n")
        return (configuration?.outbound, diagnostics.sorted.map(\.description))
    }

    @Test func `an authority, a proxy and hosts that are called directly`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(Self.authority, to: "ca.pem")
        let (outbound, lines) = read(
            "{ ca_file: \"\(path)\", http_proxy: \"http://u:p@proxy:3128/\", no_proxy: [localhost, \"*.svc\", 10.0.0.0/8] }"
        )
        #expect(lines.isEmpty && outbound?.caFile?.text == path)
        #expect(outbound?.exceptions == ["localhost", ".svc", "10.0.0.0/8"])
        #expect(outbound?.proxy == ProxyAddress("http://u:p@proxy:3128").map { .address($0) })
        #expect(read("{ http_proxy: off }").outbound?.proxy == .off)
        #expect(load(minimalFile).configuration?.outbound.proxy == nil)
    }

    @Test func `what cannot be used is an error that shows no password`() throws {
        let folder = try TemporaryFolder()
        let empty = try folder.write("nothing", to: "ca.pem")
        for (block, code) in [
            ("{ http_proxy: \"socks5://u:secret@proxy\" }", "config.bad_url"),
            ("{ http_proxy: \"http://u:secret@pro xy\" }", "config.bad_url"),
            ("{ http_proxy: proxy }", "config.bad_url"),
            ("{ no_proxy: [\"a,b\"] }", "config.bad_value"), ("{ no_proxy: [\"http://a\"] }", "config.bad_value"),
            ("{ ca_file: \"\(empty)\" }", "config.bad_value"), ("{ ca_file: no/such }", "config.file_unreadable"),
            ("{ https_proxy: \"http://a\" }", "config.unknown_key"),
        ] {
            let lines = read(block).lines
            #expect(lines.count == 1 && lines[0].contains("[\(code)]") && !lines[0].contains("secret"), "\(lines)")
        }
    }

    @Test func `a provider has the same keys, unless its kind means another thing by them`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(Self.authority, to: "ca.pem")
        let block = "providers:\n  other: { kind: greeting, http_proxy: off, ca_file: \"\(path)\" }\n"
        let (configuration, _) = load(minimalFile + block)
        let provider = try #require(configuration?.providers.first { $0.name.value == "other" })
        #expect(provider.outbound.proxy == .off && provider.outbound.caFile?.text == path)
        #expect(provider.block(nil).entries?.isEmpty == true)
        let own = ConfigurationGrammar([.optional("ca_file", .path, "Of its own.")])
        #expect(provider.block(own).entries?.map(\.key.value) == ["ca_file"])
    }
}
