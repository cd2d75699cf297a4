internal import MartletCore
internal import MartletJSON
package import MartletProvider

extension SessionStore {
    /// Records that the owner of a session has authenticated again.
    package func renew(_ token: Credential, with proof: SessionProof) async throws(SessionError) -> SessionProof {
        guard token.scheme == .bearer, let token = token.withBytes({ SessionToken($0, kind: .access) }) else {
            throw .invalid(.sessionTokenMalformed)
        }
        return try await uncontended(await renew(token, with: proof))
    }

    /// One attempt; `nil` if a concurrent renewal won.
    private func renew(_ token: SessionToken, with proof: SessionProof) async throws(SessionError) -> SessionProof? {
        let time = currentTime().readOnly
        let sessionKey = SessionKey(lookup: token.lookup)
        let seal = SessionSeal(sessionKey, sealing)
        let found = try await fromStore(
            await backend.lookUpAndTouch(
                sessionKey, tokenHash: token.tokenHash, lastAddress: [], readsClaims: false, at: time))
        guard case .found(let session) = found else { throw .invalid(.sessionUnknown) }
        let opened: OpenedRecord
        do throws(AuthenticationError) {
            opened = try OpenedRecord(token, seal, session, at: time, sealing)
        } catch {
            throw .invalid(error.code)
        }
        let proof = proof.bounded(at: time)
        guard proof.authTime >= opened.record.authTime else { return opened.record.proof }
        let record = try seal.seal(opened.record.renewed(by: proof), with: opened.key)
        let replacement = RecordReplacement(expected: session.record, record: record)
        switch try await fromStore(await backend.replace(sessionKey, replacement, at: time)) {
        case .done:
            await changed([sessionKey.revocationID])
            return proof
        case .lost: return nil
        case .gone: throw .invalid(.sessionUnknown)
        }
    }
}

extension SessionProof {
    /// The proof with a time like that of a login: never newer than now.
    func bounded(at time: SessionTime) -> SessionProof {
        SessionProof(authTime: UnixTime(seconds: min(max(authTime.seconds, 0), time.now / 1000)), acr: acr)
    }
}

extension SessionRecord {
    /// The authentication that the session is based on.
    var proof: SessionProof { SessionProof(authTime: authTime, acr: claims[SessionProof.levelClaim]?.string) }
}
