internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// A user who was found.
struct FoundUser: Sendable {
    /// What identities and records are filed under.
    let subject: String
    /// The name for people to see.
    let displayName: String
    /// `nil` where what is stored is no usable hash.
    let hash: PasswordHash?
    /// The hash as it is stored, for replacing exactly this one; `nil` where nothing is ever written.
    let stored: String?
    let isDisabled: Bool
}

/// Where the users are.
enum UserSource: Sendable {
    case accounts(any UserRecordStoring)
    case file(UserFile)

    /// Finds a user by the name that was typed; `nil` if there is none.
    ///
    /// - Parameters:
    ///   - name: exact, for a file.
    ///   - key: its canonical form, for the account store.
    func find(_ name: [UInt8], key: String?) async throws(StoreError) -> FoundUser? {
        switch self {
        case .accounts(let users):
            guard let key, let record = try await users.record(for: key) else { return nil }
            return FoundUser(
                subject: record.key, displayName: record.name, hash: try? PasswordHash(record.hash),
                stored: record.hash, isDisabled: record.isDisabled)
        case .file(let file):
            guard let hash = file.users.hash(of: name) else { return nil }
            let text = String(decoding: name, as: UTF8.self)
            return FoundUser(subject: text, displayName: text, hash: hash, stored: nil, isDisabled: false)
        }
    }
}
