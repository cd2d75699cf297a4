import Foundation
import MartletHTTP2
import Testing

/// Inputs found by fuzzing: every reported text is available.
@Suite struct HTTP2CrasherTests {
    private func crashers(_ name: String) throws -> [Data] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Fuzz/Crashers/\(name)").standardizedFileURL
        return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .map { try Data(contentsOf: $0) }
    }

    private func expectTexts(_ events: [Seen]) {
        for event in events {
            switch event {
            case .head(_, let text, _), .interim(_, let text): #expect(text.hasSuffix("\r\n\r\n"))
            default: break
            }
        }
    }

    @Test func `former crashers of the server side are harmless`() throws {
        for crasher in try crashers("HTTP2Server") {
            let server = try HTTP2Session.server(HTTP2Options())
            expectTexts(server.take(Raw.magic + crasher.dropFirst()).events)
        }
    }

    @Test func `former crashers of the client side are harmless`() throws {
        for crasher in try crashers("HTTP2Client") {
            let client = try HTTP2Session.client(HTTP2Options())
            for _ in 0..<3 { _ = client.request("GET / HTTP/1.1\nHost: a\n\n") }
            _ = client.output()
            expectTexts(client.take([UInt8](crasher.dropFirst())).events)
        }
    }
}
