import Foundation
import MartletConfig
import Testing

/// Configurations that are broken or insecure, one file for each mistake, with what `martlet check` says about it beside it.
@Suite struct `Fixtures` {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures")

    static let names: [String] = {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return files.filter { $0.hasSuffix(".yaml") }.map { String($0.dropLast(5)) }.sorted()
    }()

    @Test func `are there`() {
        #expect(Self.names.count >= 25)
    }

    @Test(arguments: names)
    func `are told off exactly as expected`(name: String) throws {
        let text = try Data(contentsOf: Self.folder.appending(path: "\(name).yaml"))
        let (configuration, diagnostics) = GatewayConfiguration.decode(
            text: Array(text), file: "\(name).yaml", environment: { _ in nil }, knownKinds: testKinds)
        let said = diagnostics.sorted.map { "\($0)\n" }.joined()
        let expected = Self.folder.appending(path: "\(name).expected")
        if ProcessInfo.processInfo.environment["MARTLET_RECORD_FIXTURES"] == "1" {
            try Data(said.utf8).write(to: expected)
        }
        #expect(said == String(decoding: try Data(contentsOf: expected), as: UTF8.self))
        #expect((configuration == nil) == diagnostics.hasErrors)
    }
}
