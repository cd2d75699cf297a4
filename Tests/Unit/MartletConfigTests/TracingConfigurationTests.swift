import MartletCore
import MartletTesting
import Testing

@testable import MartletConfig

/// `tracing:` and the file with its fields.
@Suite struct `Tracing in the configuration` {
    /// The block, and the lines that `check` prints.
    private func read(
        _ block: String, log: String = "{ level: info }"
    ) -> (tracing: TracingConfiguration?, lines: [String]) {
        let (configuration, diagnostics) = load("\(minimalFile)log: \(log)\ntracing: \(block)\n")
        return (configuration?.tracing, diagnostics.sorted.map(\.description))
    }

    @Test func `is off without the block, and needs an address alone`() throws {
        #expect(load(minimalFile).configuration?.tracing == nil)
        let tracing = try #require(read("{ otlp: http://127.0.0.1:4318 }").tracing)
        #expect(tracing.url == "http://127.0.0.1:4318/v1/traces" && tracing.sample.millionths == 10_000)
        #expect(tracing.parent == .trusted && tracing.subject == .off && tracing.headers.isEmpty)
        #expect(
            read("{ otlp: \"https://otel.example.com/base/\" }").tracing?.url
                == "https://otel.example.com/base/v1/traces")
        #expect(
            read("{ otlp: http://127.0.0.1:4318, sample: 0.05%, parent: none }").tracing?.parent
                == TracingConfiguration.Parent.none)
    }

    @Test func `a query in the address is an error`() {
        let lines = read("{ otlp: \"http://127.0.0.1:4318/?a=b\" }").lines
        #expect(lines.count == 1 && lines[0].hasSuffix("[config.bad_url]"), "\(lines)")
    }

    @Test func `a hash of the subject needs the key of the log`() {
        let block = "{ otlp: http://127.0.0.1:4318, subject: hash }"
        #expect(read(block, log: "{ subject_key: 0123456789abcdef }").lines.isEmpty)
        for log in ["{ level: info }", "{ subject: off, subject_key: 0123456789abcdef }"] {
            let lines = read(block, log: log).lines
            #expect(lines.count == 1 && lines[0].hasSuffix("[config.missing_key]"), "\(lines)")
        }
    }

    @Test func `the fields of a file are read, one a line, and none of their values is printed`() throws {
        let folder = try TemporaryFolder()
        func fields(
            _ text: String, to url: String = "http://127.0.0.1:4318"
        ) throws -> (
            tracing: TracingConfiguration?, lines: [String]
        ) {
            let path = try folder.write(text, to: "headers.txt")
            return read("{ otlp: \"\(url)\", headers_file: \"\(path)\" }")
        }
        let (tracing, lines) = try fields("# a comment\nAuthorization: Bearer a:b \r\n\nx-key:v\n")
        let headers = try #require(tracing).headers
        #expect(lines.isEmpty && headers.map(\.name) == ["Authorization", "x-key"])
        #expect(headers.map { $0.value.withBytes { String(decoding: $0, as: UTF8.self) } } == ["Bearer a:b", "v"])
        for bad in ["secret", "a b: secret", ": secret", "a:", "a: secr\u{1}et", "a: sécret"] {
            let lines = try fields("x: y\n\(bad)\n").lines
            #expect(lines.count == 1 && lines[0].hasSuffix("[config.bad_header]"), "\(lines)")
            #expect(lines[0].contains("line 2") && !lines[0].contains("secr"))
        }
        let clear = try fields("a: b\n", to: "http://otel.example.com:4318").lines
        #expect(clear.count == 1 && clear[0].contains("warning") && clear[0].hasSuffix("[config.insecure]"), "\(clear)")
        #expect(try fields("a: b\n", to: "https://otel.example.com").lines.isEmpty)
    }
}
