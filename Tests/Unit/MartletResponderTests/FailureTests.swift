import MartletCore
import MartletHTTP
import MartletProvider
import Testing

@testable import MartletResponder

@Suite struct FailureTests {
    /// The complete response.
    private func response(
        _ failure: Failure, close: Bool = false, offersBasic: Bool = false, strictTransportSeconds: Int64 = 0
    ) -> String {
        WrittenFailure(
            failure, close: close, offersBasic: offersBasic, strictTransportSeconds: strictTransportSeconds
        ).text
    }

    /// The same for a gRPC caller.
    private func status(_ failure: Failure) -> String { WrittenFailure(status: failure).text }

    @Test func `a response has the coarse code, and never the reason`() {
        let body =
            #"{"type":"urn:martlet:problem:upstream_unavailable","title":"Bad Gateway","status":502,"#
            + #""code":"upstream_unavailable","request_id":"r1"}"# + "\n"
        let head =
            "HTTP/1.1 502 Bad Gateway\r\nContent-Type: application/problem+json\r\nCache-Control: no-store\r\n"
            + "Content-Length: \(body.utf8.count)\r\nDate: \(WrittenFailure.date)\r\nX-Request-Id: r1\r\n\r\n"
        let failure = Failure.upstreamUnavailable("upstream.refused")
        #expect(response(failure) == head + body)
    }

    @Test func `challenges say what is wrong with the credential`() {
        let bearer = "\r\nWWW-Authenticate: Bearer realm=\"martlet\""
        #expect(response(.credentialMissing).contains("\(bearer)\r\n"))
        #expect(response(.credentialInvalid("test.reason")).contains("\(bearer), error=\"invalid_token\"\r\n"))
        #expect(response(.notAllowed("test.reason")).contains("\(bearer), error=\"insufficient_scope\"\r\n"))
        #expect(!response(.authUnavailable("test.reason")).contains("WWW-Authenticate"))
        let basic = "\r\nWWW-Authenticate: Basic realm=\"martlet\", charset=\"UTF-8\"\r\n"
        #expect(response(.credentialMissing, offersBasic: true).contains(basic))
        #expect(!response(.notAllowed("test.reason"), offersBasic: true).contains(basic))
    }

    @Test func `few responses have further fields`() {
        #expect(response(.methodNotAllowed("GET, HEAD")).contains("\r\nAllow: GET, HEAD\r\n"))
        #expect(
            response(.movedToHTTPS(authority: Array("a:80".utf8), path: Array("/b".utf8), query: [], port: 443))
                .contains("\r\nLocation: https://a/b\r\n"))
        #expect(response(.throttled("test.reason", retryAfter: 7)).contains("\r\nRetry-After: 7\r\n"))
        let readable = response(.noRoute.readable(by: "https://a"))
        #expect(readable.contains("\r\nVary: Origin\r\nAccess-Control-Allow-Origin: https://a\r\n"))
        let strict = response(.noRoute, strictTransportSeconds: 60)
        #expect(strict.contains("\r\nStrict-Transport-Security: max-age=60\r\n"))
        #expect(response(.noRoute, close: true).contains("\r\nConnection: close\r\n"))
        #expect(response(.webSocketVersion).contains("\r\nSec-WebSocket-Version: 13\r\nConnection: Upgrade\r\n"))
    }

    @Test func `names what is invalid in a body`() {
        let errors = [BodyError("device_name", .tooLong, detail: "Too long.")]
        let written = response(.malformed("test.reason", errors))
        #expect(
            written.contains(#""detail":"Too long.","errors":[{"pointer":"/device_name","code":"too_long"}],"#))
    }

    @Test(arguments: [
        (Failure.credentialMissing, 16), (.notAllowed("test.reason"), 7), (.noRoute, 12), (.bodyTooLarge, 8),
        (.malformed("test.reason"), 3), (.authUnavailable("test.reason"), 14), (.upstreamTimeout("test.reason"), 4),
    ])
    func `gRPC callers get a status instead`(failure: Failure, code: Int) {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nGrpc-Status: \(code)\r\n"
            + "Grpc-Message: \(failure.code)\r\n"
        #expect(status(failure).hasPrefix(head) && status(failure).hasSuffix("\r\n\r\n"))
        var trailers = ByteBuffer()
        failure.writeStatusTrailers(into: &trailers)
        let written = String(decoding: trailers.array, as: UTF8.self)
        #expect(written == "grpc-status: \(code)\r\ngrpc-message: \(failure.code)\r\n")
    }

    @Test func `the seconds of a provider's error are rounded up`() {
        for (span, seconds) in [(1, 1), (1000, 1), (1001, 2), (2500, 3)] {
            let error = AuthenticationError.unavailable("test.down", retryAfter: .milliseconds(span))
            #expect(Failure.authentication(error).retryAfter == seconds)
        }
    }
}
