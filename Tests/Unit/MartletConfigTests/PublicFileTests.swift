import MartletConfig
import MartletCore
import MartletTesting
import Testing

/// A file that everyone may read, as `jwks_file` of a provider names one.
@Suite struct PublicFileTests {
    struct Block: ConfigurationDecodable {
        let content: [UInt8]?

        init(from reader: inout ConfigurationReader) { content = reader.file("keys_file", maximumBytes: 10)?.value }
    }

    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    func read(_ yaml: String) -> (block: Block?, diagnostics: Diagnostics) {
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array(yaml.utf8), file: folder.file("config.yaml"), environment: { _ in nil }, into: &diagnostics)
        return (node?.decode(Block.self, title: "block", into: &diagnostics), diagnostics)
    }

    @Test func `reads a file beside the configuration, byte by byte`() throws {
        try folder.write("{}\n", to: "keys.json")
        let (block, diagnostics) = read("keys_file: keys.json")
        #expect(block?.content == Array("{}\n".utf8))
        #expect(diagnostics.errors.isEmpty && diagnostics.description.isEmpty)
    }

    @Test func `reports a file that is missing or too large`() throws {
        try folder.write("12345678901", to: "large.json")
        for name in ["missing.json", "large.json", "."] {
            let (block, diagnostics) = read("keys_file: \(name)")
            #expect(block == nil)
            #expect(diagnostics.errors.map(\.code) == ["config.file_unreadable"])
        }
        #expect(read("{}").block?.content == nil)
        #expect(read("keys_file: ''").diagnostics.errors.map(\.code) == ["config.bad_value"])
    }
}
