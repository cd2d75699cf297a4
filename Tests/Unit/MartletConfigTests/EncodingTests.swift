import Foundation
import MartletConfig
import MartletCore
import Testing

/// Configuration files as editors write them.
@Suite struct EncodingTests {
    private static let good = """
        version: 1
        upstreams: { echo: { endpoints: ["builtin:echo"] } }
        routes: [{ name: all, auth: none, upstream: echo }]

        """

    private func decode(
        _ bytes: [UInt8], file: String = "gw.yaml"
    ) -> (configuration: GatewayConfiguration?, lines: [String]) {
        let (configuration, diagnostics) = GatewayConfiguration.decode(
            text: bytes, file: file, environment: { _ in nil }, knownKinds: testKinds)
        return (configuration, diagnostics.sorted.map(\.description))
    }

    @Test func `a byte order mark is not part of the text`() {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let good = decode(mark + Self.good.utf8)
        #expect(good.configuration != nil && good.lines == [])
        for text in [
            "verion: 1\n" + Self.good, Self.good.replacing("version", with: "é: 1\nversion") + "x: {}\n", "a: [\n",
        ] {
            #expect(decode(mark + text.utf8).lines == decode(Array(text.utf8)).lines)
            #expect(!decode(mark + text.utf8).lines.isEmpty)
        }
        // One is allowed, at the start.
        #expect(decode(mark + mark + Self.good.utf8).configuration == nil)
    }

    @Test(arguments: [String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .utf32LittleEndian])
    func `other encodings are told`(encoding: String.Encoding) throws {
        let bytes = Array(try #require(Self.good.data(using: encoding)))
        let (configuration, lines) = decode(bytes)
        #expect(configuration == nil)
        #expect(
            lines == ["gw.yaml:1:1: error: the file is UTF-16 or UTF-32 text: save it as UTF-8 [config.yaml_syntax]"])
    }
}
