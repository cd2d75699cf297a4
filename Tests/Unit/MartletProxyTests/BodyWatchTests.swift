import MartletAuthenticator
import MartletCore
import MartletCrypto
import MartletProvider
import MartletTesting
import MartletUpstreams
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct `Bodies that a credential vouches for` {
    private func result(_ body: String?) -> VerificationResult {
        let digest = body.flatMap { BodyDigest(sha256: SHA256.digest(Array($0.utf8))) }
        let now = UnixTime(seconds: 1)
        let identity = Identity(
            providerSubject: "s", issuer: "i", authTime: now, issuedAt: now, expiresAt: UnixTime(seconds: 9),
            bodyDigest: digest)
        return .success(VerifiedPrincipal(Principal(identity: identity, provider: "p", sessionID: nil)))
    }

    private func add(_ text: String, to check: inout BodyWatch) {
        let bytes = Array(text.utf8)
        unsafe bytes.withUnsafeBufferPointer { unsafe check.add($0) }
    }

    private func isAccepted(_ result: BodyWatch.Result) -> Bool {
        if case .accepted = result { true } else { false }
    }

    /// The code of a check that begins, `nil` for none, and whether it is pending then.
    private func begin(_ check: inout BodyWatch, _ result: VerificationResult?, hasBody: Bool) -> (ErrorCode?, Bool) {
        let code = check.begin(result, hasBody: hasBody)?.code
        return (code, check.isActive)
    }

    @Test func `are compared when they are complete`() {
        for (pieces, expected) in [(["ab", "c"], true), (["ab", "d"], false), (["ab"], false), ([], false)] {
            var check = BodyWatch()
            #expect(begin(&check, result("abc"), hasBody: true) == (nil, true))
            for piece in pieces { add(piece, to: &check) }
            let (isAccepted, isActive) = (isAccepted(check.finish()), check.isActive)
            // The comparison is made once.
            #expect(isAccepted == expected && !isActive)
        }
    }

    @Test func `are compared immediately where there are none`() {
        var check = BodyWatch()
        #expect(begin(&check, result(""), hasBody: false) == (nil, false))
        #expect(begin(&check, result("abc"), hasBody: false) == ("digest.mismatch", false))
    }

    @Test func `are not looked at where nothing vouches for them`() {
        var check = BodyWatch()
        #expect(begin(&check, result(nil), hasBody: true) == (nil, false))
        #expect(begin(&check, .failure(.rejected("x")), hasBody: true) == (nil, false))
        #expect(begin(&check, nil, hasBody: true) == (nil, false))
    }

    @Test func `begin anew with the next request`() {
        var check = BodyWatch()
        _ = check.begin(result("abc"), hasBody: true)
        add("xyz", to: &check)
        check.end()
        #expect(begin(&check, result("abc"), hasBody: true) == (nil, true))
        add("abc", to: &check)
        let accepted = isAccepted(check.finish())
        #expect(accepted)
    }

    // MARK: Copies

    private func copy(expecting count: Int? = nil, onEnd: @escaping @Sendable () -> Void = {}) -> MirrorCopy {
        let request = MirrorRequest(
            upstream: "shadow", head: [], host: nil, fields: MirrorFields(dropping: [], mark: "X-M"), body: [],
            isRepeatable: false)
        return MirrorCopy(request, expecting: count, MirrorPermit(onEnd: onEnd))
    }

    private func body(_ result: BodyWatch.Result) -> String? {
        guard case .accepted(let request?) = result else { return nil }
        return request.body.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `are copied piece by piece`() {
        var watch = BodyWatch()
        watch.collect(copy(expecting: 3))
        add("ab", to: &watch)
        add("c", to: &watch)
        let (isActive, text, again) = (watch.isActive, body(watch.finish()), body(watch.finish()))
        #expect(isActive && text == "abc" && again == nil)
    }

    @Test func `are not copied where they are too long, and not looked at any further`() {
        var watch = BodyWatch()
        watch.collect(copy())
        add(String(repeating: "x", count: MirrorRequest.maximumBodyBytes), to: &watch)
        let fits = watch.isActive
        add("y", to: &watch)
        let (isActive, text) = (watch.isActive, body(watch.finish()))
        #expect(fits && !isActive && text == nil)
    }

    @Test func `are compared, too, where they are copied`() {
        for (text, expected) in [("abc", "abc"), ("abd", nil)] {
            var watch = BodyWatch()
            _ = watch.begin(result("abc"), hasBody: true)
            watch.collect(copy())
            add(text, to: &watch)
            let found = body(watch.finish())
            #expect(found == expected)
        }
        var long = BodyWatch()
        let text = String(repeating: "x", count: MirrorRequest.maximumBodyBytes + 1)
        _ = long.begin(result(text), hasBody: true)
        long.collect(copy())
        add(text, to: &long)
        let isActive = long.isActive
        let result = long.finish()
        #expect(isActive && isAccepted(result) && body(result) == nil)
    }

    @Test func `release what they hold of a copy that is given up`() {
        let ends = Box(0)
        var watch = BodyWatch()
        watch.collect(copy { ends.withLock { $0 += 1 } })
        add("x", to: &watch)
        let before = ends.value
        watch.end()
        #expect(before == 0 && ends.value == 1)
    }
}
