import Foundation
import MartletConfig
import MartletCore
import Testing

/// Encodings of configuration files.
@Suite struct EncodingTests {
    @Test func `a UTF-8 byte order mark is ignored`() {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let valid = decode(mark + minimalFile.utf8)
        #expect(valid.configuration != nil && valid.lines == [])
        for text in [
            "verion: 1\n" + minimalFile, minimalFile.replacing("version", with: "é: 1\nversion") + "x: {}\n", "a: [\n",
        ] {
            #expect(decode(mark + text.utf8).lines == decode(Array(text.utf8)).lines)
            #expect(!decode(mark + text.utf8).lines.isEmpty)
        }
        // Only one is allowed, at the start.
        #expect(decode(mark + mark + minimalFile.utf8).configuration == nil)
    }

    @Test(arguments: [String.Encoding.utf16, .utf16LittleEndian, .utf16BigEndian, .utf32, .utf32LittleEndian])
    func `other encodings are reported`(encoding: String.Encoding) throws {
        let bytes = Array(try #require(minimalFile.data(using: encoding)))
        let (configuration, lines) = decode(bytes)
        #expect(configuration == nil)
        #expect(
            lines == ["gw.yaml:1:1: error: the file is UTF-16 or UTF-32 text: save it as UTF-8 [config.yaml_syntax]"])
    }
}
