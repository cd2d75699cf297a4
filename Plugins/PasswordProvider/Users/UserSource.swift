internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
internal import MartletProvider

struct FoundUser: Sendable {
    /// The key of the user's identity and record.
    let subject: String
    /// The name for display.
    let displayName: String
    /// `nil` if the stored hash is unusable.
    let hash: PasswordHash?
    /// The stored hash, for compare-and-replace; `nil` if the source is read-only.
    let stored: String?
    let isDisabled: Bool
    /// The claims of the user's registration.
    var claims: JSONObject = [:]
}

enum UserSource: Sendable {
    case accounts(any UserRecordStoring)
    case file(UserFile)

    /// Finds a user by the presented name; `nil` if there is none.
    ///
    /// - Parameters:
    ///   - name: the exact name, used for a file.
    ///   - key: its canonical form, used for the account store.
    func find(_ name: [UInt8], key: String?) async throws(StoreError) -> FoundUser? {
        switch self {
        case .accounts(let users):
            guard let key, let record = try await users.record(for: key) else { return nil }
            return FoundUser(
                subject: record.key, displayName: record.name, hash: try? PasswordHash(record.hash),
                stored: record.hash, isDisabled: record.isDisabled, claims: record.claims)
        case .file(let file):
            guard let hash = file.users.hash(of: name) else { return nil }
            let text = String(decoding: name, as: UTF8.self)
            return FoundUser(subject: text, displayName: text, hash: hash, stored: nil, isDisabled: false)
        }
    }
}
