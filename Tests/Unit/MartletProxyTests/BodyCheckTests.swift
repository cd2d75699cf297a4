import MartletAuthenticator
import MartletCore
import MartletCrypto
import MartletProvider
import Testing

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

    private func add(_ text: String, to check: inout BodyCheck) {
        let bytes = Array(text.utf8)
        unsafe bytes.withUnsafeBufferPointer { unsafe check.add($0) }
    }

    /// The code of a check that begins, `nil` for none, and whether it is pending then.
    private func begin(_ check: inout BodyCheck, _ result: VerificationResult?, hasBody: Bool) -> (ErrorCode?, Bool) {
        let code = check.begin(result, hasBody: hasBody)?.code
        return (code, check.isPending)
    }

    @Test func `are compared when they are complete`() {
        for (pieces, expected) in [(["ab", "c"], true), (["ab", "d"], false), (["ab"], false), ([], false)] {
            var check = BodyCheck()
            #expect(begin(&check, result("abc"), hasBody: true) == (nil, true))
            for piece in pieces { add(piece, to: &check) }
            let (holds, isPending) = (check.holds(), check.isPending)
            // The comparison is made once.
            #expect(holds == expected && !isPending)
        }
    }

    @Test func `are compared immediately where there are none`() {
        var check = BodyCheck()
        #expect(begin(&check, result(""), hasBody: false) == (nil, false))
        #expect(begin(&check, result("abc"), hasBody: false) == ("digest.mismatch", false))
    }

    @Test func `are not looked at where nothing vouches for them`() {
        var check = BodyCheck()
        #expect(begin(&check, result(nil), hasBody: true) == (nil, false))
        #expect(begin(&check, .failure(.rejected("x")), hasBody: true) == (nil, false))
        #expect(begin(&check, nil, hasBody: true) == (nil, false))
    }

    @Test func `begin anew with the next request`() {
        var check = BodyCheck()
        _ = check.begin(result("abc"), hasBody: true)
        add("xyz", to: &check)
        check.end()
        #expect(begin(&check, result("abc"), hasBody: true) == (nil, true))
        add("abc", to: &check)
        let holds = check.holds()
        #expect(holds)
    }
}
