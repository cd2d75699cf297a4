import Foundation
import MartletConfig
import Testing

/// Invalid or insecure configurations, one file per error, each with the expected output of `martlet check`.
@Suite struct `Fixtures` {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures")

    static let names: [String] = {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return files.filter { $0.hasSuffix(".yaml") }.map { String($0.dropLast(5)) }.sorted()
    }()

    @Test func `are found`() {
        #expect(Self.names.count >= 25)
    }

    @Test(arguments: names)
    func `give exactly the expected diagnostics`(name: String) throws {
        let text = try Data(contentsOf: Self.folder.appending(path: "\(name).yaml"))
        let (configuration, diagnostics) = GatewayConfiguration.decode(
            text: Array(text), file: "\(name).yaml", environment: { _ in nil }, knownKinds: testKinds)
        let actual = diagnostics.sorted.map { "\($0)\n" }.joined()
        let expected = Self.folder.appending(path: "\(name).expected")
        if ProcessInfo.processInfo.environment["MARTLET_RECORD_FIXTURES"] == "1" {
            try Data(actual.utf8).write(to: expected)
        }
        #expect(actual == String(decoding: try Data(contentsOf: expected), as: UTF8.self))
        #expect((configuration == nil) == diagnostics.hasErrors)
    }
}
