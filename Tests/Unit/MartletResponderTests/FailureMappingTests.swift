import MartletCore
import MartletHTTP
import MartletProvider
import Testing

@testable import MartletResponder

@Suite struct FailureMappingTests {
    // MARK: Checks

    @Test(arguments: [
        (Failure.noRoute, 403, 403), (.methodNotAllowed("GET"), 403, 403), (.credentialMissing, 401, 401),
        (.notAllowed("policy.claim_missing"), 403, 403), (.head(.pathAmbiguous), 400, 403),
        (.check(.conflict(.originalURI)), 400, 403), (.throttled("a.b", retryAfter: 3), 429, 403),
        (.authUnavailable("a.b"), 503, 403), (.signIn(at: "/auth", "auth.credential_missing"), 302, 302),
    ])
    func `a check has a status that a proxy passes on`(_ failure: Failure, _ status: Int, _ alike: Int) {
        let (checked, denied) = (failure.ofCheck(deniesAlike: false), failure.ofCheck(deniesAlike: true))
        #expect(checked.status == status && denied.status == alike)
        #expect("\(denied.code)" == "\(failure.code)" && denied.reason == failure.reason)
        #expect(denied.retryAfter == failure.retryAfter && !checked.closes)
        #expect(denied.ofCheck(deniesAlike: true).status == alike)
    }

    @Test func `the log names the field of a check`() {
        #expect(Failure.check(.missing(.forwardedURI)).condition == "X-Forwarded-Uri")
        #expect(Failure.check(.undescribed).condition == nil)
    }

    // MARK: Heads

    private static let heads: [(HeadError, Int, String, ErrorCode)] = [
        (.badRequestLine, 400, "request_invalid", "request.bad_request_line"),
        (.transferEncodingWithContentLength, 400, "request_invalid", "request.transfer_encoding_with_content_length"),
        (.hostMissing, 400, "request_invalid", "request.host_missing"),
        (.badVersion, 400, "request_invalid", "request.bad_version"),
        (.pathAmbiguous, 400, "request_invalid", "request.path_ambiguous"),
        (.methodCase, 400, "request_invalid", "request.method_case"),
        (.uriTooLong, 414, "request_too_large", "request.uri_too_long"),
        (.headTooLarge, 431, "request_too_large", "request.head_too_large"),
        (.tooManyFields, 431, "request_too_large", "request.too_many_fields"),
    ]

    @Test(arguments: heads)
    func `a head that is rejected has the status of its error`(
        error: HeadError, status: Int, code: String, reason: ErrorCode
    ) {
        let failure = Failure.head(error)
        #expect(failure.status == status && "\(failure.code)" == code && failure.reason == reason)
    }

    /// Those of requests, without those of upstreams' responses.
    private static let requestErrors = HeadError.allCases.filter { $0.rawValue < 64 }

    @Test(arguments: requestErrors)
    func `a connection is closed after any head that is rejected`(error: HeadError) {
        let failure = Failure.head(error)
        #expect(failure.closes && failure.reason == error.code && failure.retryAfter == 0)
        let isTooLarge = failure.status == 414 || failure.status == 431
        #expect((failure.status == 400 || isTooLarge) && "\(failure.code)".hasSuffix("too_large") == isTooLarge)
        #expect(WrittenFailure(failure, close: true).fields == ["Connection: close"])
    }

    // MARK: Errors of providers

    private static let dispositions: [(AuthenticationError.Disposition, Int, String, Int)] = [
        (.rejected, 401, "credential_invalid", 0), (.unavailable, 503, "auth_unavailable", 9),
        (.malformed, 400, "request_invalid", 0), (.denied, 403, "not_allowed", 0), (.throttled, 429, "throttled", 9),
        (.notFound, 404, "not_found", 0),
    ]

    @Test(arguments: dispositions)
    func `an error of a provider has the status of its kind, and a time only where a retry may help`(
        disposition: AuthenticationError.Disposition, status: Int, code: String, retryAfter: Int
    ) {
        let failure = Failure.authentication(
            AuthenticationError("stub.failed", disposition, retryAfter: .seconds(9)))
        #expect(failure.status == status && "\(failure.code)" == code && failure.reason == "stub.failed")
        #expect(failure.retryAfter == retryAfter && !failure.closes)
        let plain = Failure.authentication(AuthenticationError("stub.failed", disposition))
        #expect(plain.status == status && plain.retryAfter == min(retryAfter, 1))
    }

    @Test func `an invalid credential has a challenge, and an outage has none`() {
        let rejected = Failure.authentication(.rejected("stub.failed"))
        let denied = Failure.authentication(.denied("stub.failed"))
        #expect(rejected.challenge == .invalid && denied.challenge == .insufficient)
        let others: [AuthenticationError] = [
            .unavailable("stub.failed"), .malformed("stub.failed"), .throttled("stub.failed", retryAfter: .zero),
            AuthenticationError("stub.failed", .notFound),
        ]
        for error in others { #expect(Failure.authentication(error).challenge == .none) }
    }

    private static let spans: [(Duration, Int)] = [
        (.zero, 1), (.seconds(-5), 1), (.nanoseconds(1), 1), (.nanoseconds(999_999_999), 1), (.seconds(1), 1),
        (.nanoseconds(1_000_000_001), 2), (.seconds(3_600), 3_600), (.seconds(Int64.max), 1_152_921_505),
        (.seconds(Int64.min), 1),
    ]

    @Test(arguments: spans)
    func `the time until a retry is in whole seconds, at least one`(span: Duration, seconds: Int) {
        let error = AuthenticationError.throttled("stub.many", retryAfter: span)
        #expect(Failure.authentication(error).retryAfter == seconds)
    }

    @Test func `only a malformed body has errors`() {
        let errors = [BodyError("token", .missing), BodyError("device", .tooLong)]
        let dispositions: [AuthenticationError.Disposition] = [
            .malformed, .rejected, .unavailable, .denied, .throttled, .notFound,
        ]
        let counts = dispositions.map { disposition in
            Failure.authentication(AuthenticationError("stub.failed", disposition, bodyErrors: errors)).bodyErrors.count
        }
        #expect(counts == [2, 0, 0, 0, 0, 0])
    }
}

@Suite struct FailureStatusTests {
    private static let head = "HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\n"
    private static let ids = "Date: \(WrittenFailure.date)\r\nX-Request-Id: r1\r\n"

    @Test(arguments: FailureCase.all)
    func `a gRPC client gets the status of its failure in one head`(item: FailureCase) {
        // Of the other fields, it gets those that say when and how to try again.
        let fields = item.fields.filter { $0.hasPrefix("Retry-After: ") || $0.hasPrefix("WWW-Authenticate: ") }
        let expected =
            "\(Self.head)Grpc-Status: \(item.grpcStatus)\r\nGrpc-Message: \(item.code)\r\n\(Self.ids)"
            + fields.map { "\($0)\r\n" }.joined() + "\r\n"
        #expect(WrittenFailure(status: item.failure).text == expected)
    }

    @Test(arguments: FailureCase.all)
    func `a call that has started ends with the same status in its trailers`(item: FailureCase) {
        var trailers = ByteBuffer()
        trailers.append("a: b\r\n")
        item.failure.writeStatusTrailers(into: &trailers)
        let text = String(decoding: trailers.array, as: UTF8.self)
        #expect(text == "a: b\r\ngrpc-status: \(item.grpcStatus)\r\ngrpc-message: \(item.code)\r\n")
    }

    @Test(arguments: [(HeadError.badRequestLine, 3), (.uriTooLong, 8), (.headTooLarge, 8), (.tooManyFields, 8)])
    func `a head that is rejected has a status, too`(error: HeadError, status: Int) {
        var trailers = ByteBuffer()
        Failure.head(error).writeStatusTrailers(into: &trailers)
        let text = String(decoding: trailers.array, as: UTF8.self)
        #expect(text.hasPrefix("grpc-status: \(status)\r\n"))
    }

    @Test func `the time until a retry is before the challenge`() {
        var failure = Failure.authUnavailable("test.reason", retryAfter: 30)
        failure.challenge = .missing
        failure.allow = "GET"
        failure.location = "/b"
        let written = WrittenFailure(status: failure.readable(by: "https://a.example"), after: "before\r\n")
        let fields = "Retry-After: 30\r\nWWW-Authenticate: Bearer realm=\"martlet\"\r\n"
        #expect(
            written.text == "before\r\n\(Self.head)Grpc-Status: 14\r\nGrpc-Message: auth_unavailable\r\n\(Self.ids)"
                + "\(fields)\r\n")
    }
}
