import Foundation
import MartletTesting
import Testing

/// RFC 9113, frame by frame, against the built gateway.
@Suite struct `HTTP/2 conformance` {
    @Test(.timeLimit(.minutes(3)))
    func `every case of the conformance tool is right`() throws {
        let tool = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Conformance/run")
        let result = try run(
            Executable.named("python3"),
            [tool.standardizedFileURL.path, "--martlet", Executable.martlet(), "--alone", "--failures"],
            environment: ["PYTHONDONTWRITEBYTECODE": "1"], within: .seconds(150))
        #expect(result.ending == .exited(0), "\(result)")
        #expect(result.output.contains("martlet: 204 of 204 right, 12 of 12 bounds held"), "\(result)")
    }
}
