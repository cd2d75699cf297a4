import MartletCore
import MartletJSON
import MartletProvider
import MartletSession
import MartletSessionTesting
import MartletTesting
import Testing

/// A session whose owner authenticates again; on any backend.
@Suite struct `A renewed session` {
    @Test func `has the new proof, and everything else as before`() async throws {
        let bench = SessionBench()
        let tokens = try await bench.login()
        bench.advance(.seconds(600))
        let before = try await bench.verify(tokens.accessToken)
        let proof = try await bench.renew(tokens.accessToken, with: bench.proof(acr: "mfa"))
        #expect(proof == SessionProof(authTime: UnixTime(seconds: 1_800_000_600), acr: "mfa"))
        let after = try await bench.verify(tokens.accessToken)
        #expect(after.principal.identity.authTime == proof.authTime)
        #expect(after.principal.identity.claims["acr"] == .string("mfa"))
        #expect(after.principal.identity.claims["email"] == before.principal.identity.claims["email"])
        #expect(after.principal.identity.issuedAt == before.principal.identity.issuedAt)
        #expect(after.number == before.number && after.end == before.end)
        #expect(bench.changed.value == [after.number] && bench.revoked.value.isEmpty)
        // Its tokens keep working, and those of a refresh have the proof, too.
        let second = try await bench.store.refresh(tokens.refreshToken)
        #expect(try await bench.verify(second.accessToken).principal.identity.authTime == proof.authTime)
    }

    @Test func `loses a level that the new proof does not state`() async throws {
        let bench = SessionBench()
        let token = try await bench.login().accessToken
        try await bench.renew(token, with: bench.proof(acr: "mfa"))
        bench.advance(.seconds(1))
        try await bench.renew(token, with: bench.proof())
        #expect(try await bench.verify(token).principal.identity.claims["acr"] == nil)
    }

    @Test func `keeps its proof against an older one`() async throws {
        let bench = SessionBench()
        let token = try await bench.login().accessToken
        let old = SessionProof(authTime: Identity.ann.authTime.advanced(bySeconds: -1), acr: "mfa")
        let kept = try await bench.renew(token, with: old)
        #expect(kept == SessionProof(authTime: Identity.ann.authTime, acr: nil) && bench.changed.value.isEmpty)
        #expect(try await bench.verify(token).principal.identity.claims["acr"] == nil)
    }

    @Test(arguments: [Int64.max, 1_800_000_001, Int64.min, -1])
    func `has no proof from the future or from before time`(seconds: Int64) async throws {
        let bench = SessionBench()
        let token = try await bench.login().accessToken
        let proof = try await bench.renew(token, with: SessionProof(authTime: UnixTime(seconds: seconds), acr: nil))
        let expected = seconds > 0 ? UnixTime(seconds: 1_800_000_000) : Identity.ann.authTime
        #expect(proof.authTime == expected)
    }

    @Test func `needs a valid access token`() async throws {
        let bench = SessionBench { $0.accessTTL = .seconds(10) }
        let tokens = try await bench.login()
        func reason(_ token: Secret) async -> ErrorCode? {
            do throws(SessionError) {
                try await bench.renew(token, with: bench.proof())
                return nil
            } catch {
                return error.code
            }
        }
        #expect(await reason(tokens.refreshToken) == .sessionTokenMalformed)
        #expect(await reason(Secret("mat_x")) == .sessionTokenMalformed)
        bench.advance(.seconds(11))
        #expect(await reason(tokens.accessToken) == .sessionUnknown)
        _ = try await bench.store.end(tokens.session)
        #expect(await reason(tokens.accessToken) == .sessionUnknown)
        #expect(bench.changed.value.isEmpty)
    }
}
