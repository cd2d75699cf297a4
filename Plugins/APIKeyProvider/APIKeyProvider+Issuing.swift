public import MartletCore
internal import MartletCrypto
public import MartletProvider

extension APIKeyProvider: APIKeyIssuing {
    /// How many ids are tried; a second one is as unlikely as a collision of 64 random bits.
    private static let attempts = 3

    public var keys: any APIKeyStoring {
        switch source {
        case .accounts(let keys): keys.store
        case .file(let file): file
        }
    }

    public var storesKeysInAccounts: Bool { if case .accounts = source { true } else { false } }

    /// Makes a key and stores its digest.
    public func issue(_ request: APIKeyRequest) async throws(StoreError) -> IssuedAPIKey {
        for _ in 0..<Self.attempts {
            let new = try Self.make(nil)
            let record = APIKeyRecord(
                id: new.id, digest: new.digest, subject: request.subject, isAccount: request.isAccount,
                claims: request.claims, scopes: request.scopes, createdAt: context.clock.unixTime,
                expiresAt: request.expiresAt)
            if try await keys.add(record) { return IssuedAPIKey(record: record, key: new.text) }
        }
        throw StoreError(code: "api_key.no_id", message: "every id that was tried is taken")
    }

    /// Makes a key with the id of another one, which is accepted for the grace period.
    public func rotate(_ id: String, grace: Duration) async throws(StoreError) -> IssuedAPIKey? {
        let new = try Self.make(id)
        let now = context.clock.unixTime
        let end = grace > .zero ? now.advanced(bySeconds: max(grace.wholeSeconds, 1)) : nil
        let record = try await keys.rotate(id, to: new.digest, acceptingPreviousUntil: end, at: now)
        return record.map { IssuedAPIKey(record: $0, key: new.text) }
    }

    private static func make(_ id: String?) throws(StoreError) -> APIKeyText.New {
        do throws(CryptoError) { return try APIKeyText.make(id: id) } catch {
            throw StoreError(code: "api_key.no_randomness", message: error.message)
        }
    }
}

extension APIKeyProvider: Explaining {
    /// The checks of a key, up to the first that fails.
    public func explain(_ credential: Credential, in context: AuthenticationContext) async -> [CheckOutcome] {
        let id: String
        do throws(AuthenticationError) { id = try Self.key(credential).id } catch {
            return [CheckOutcome(check: "form", failure: error.code, detail: "")]
        }
        let form = CheckOutcome(check: "form", failure: nil, detail: "key \(id)")
        do throws(AuthenticationError) {
            let identity = try await authenticate(credential, in: context)
            let end = identity.expiresAt == Self.never ? "does not expire" : "until \(identity.expiresAt)"
            return [form, CheckOutcome(check: "key", failure: nil, detail: "of \(identity.providerSubject), \(end)")]
        } catch {
            return [form, CheckOutcome(check: "key", failure: error.code, detail: "")]
        }
    }
}
