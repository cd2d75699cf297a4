import MartletCore
import MartletJSON
import MartletProvider
import Testing

@testable import APIKeyProvider

@Suite struct `Whether a key is accepted` {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private static let (current, previous, wrong) = (
        [UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32), [UInt8](repeating: 3, count: 32)
    )

    /// A key; times are seconds from now.
    struct Row: Sendable {
        var expires: Int64?
        var revoked = false
        var previousEnds: Int64?
        var presents = current
        let decision: KeyDecision
    }

    private static func until(_ seconds: Int64) -> KeyDecision { .accepted(until: now.advanced(bySeconds: seconds)) }

    static let rows = [
        Row(decision: .accepted(until: nil)), Row(expires: 9, decision: until(9)),
        Row(expires: 1, decision: until(1)), Row(expires: 0, decision: .rejected("api_key.expired")),
        Row(expires: -1, decision: .rejected("api_key.expired")),
        Row(revoked: true, decision: .rejected("api_key.revoked")),
        Row(expires: -1, revoked: true, decision: .rejected("api_key.revoked")),
        Row(presents: wrong, decision: .rejected("api_key.wrong_secret")),
        // Whoever does not have the secret does not learn what has become of the key.
        Row(expires: -1, revoked: true, presents: wrong, decision: .rejected("api_key.wrong_secret")),
        Row(presents: [], decision: .rejected("api_key.wrong_secret")),
        Row(presents: previous, decision: .rejected("api_key.wrong_secret")),
        Row(previousEnds: 5, decision: .accepted(until: nil)),
        Row(previousEnds: 5, presents: previous, decision: until(5)),
        Row(expires: 3, previousEnds: 5, presents: previous, decision: until(3)),
        Row(expires: 9, previousEnds: 5, presents: previous, decision: until(5)),
        Row(previousEnds: 0, presents: previous, decision: .rejected("api_key.replaced")),
        Row(revoked: true, previousEnds: 5, presents: previous, decision: .rejected("api_key.revoked")),
    ]

    @Test(arguments: rows) func `depends on`(row: Row) {
        var record = APIKeyRecord(
            id: "0011223344556677", digest: Self.current, subject: "s", isAccount: false, claims: [:], scopes: [],
            createdAt: Self.now, expiresAt: row.expires.map { Self.now.advanced(bySeconds: $0) })
        record.revokedAt = row.revoked ? Self.now : nil
        record.previous = row.previousEnds.map {
            APIKeyRecord.Previous(digest: Self.previous, endsAt: Self.now.advanced(bySeconds: $0))
        }
        #expect(KeyDecision(record, row.presents, at: Self.now) == row.decision)
    }

    @Test func `an erased key accepts nothing`() {
        let record = APIKeyRecord(
            id: "0011223344556677", digest: [], subject: "s", isAccount: true, claims: [:], scopes: [],
            createdAt: Self.now, expiresAt: nil)
        #expect(KeyDecision(record, Self.wrong, at: Self.now) == .rejected("api_key.wrong_secret"))
    }
}
