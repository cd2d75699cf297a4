import MartletCore
import Testing

@testable import MartletAuthenticator

@Suite struct RecentRevocationsTests {
    private static let limit = RecentRevocations.limit
    /// When revocations are no longer needed, in nanoseconds.
    private static let lifetime = 2 * Authenticator.verificationTimeout
    private let start: Int64 = 1_000_000_000_000

    private func ids(_ count: Int) -> [UInt64] { Array(1...UInt64(count)) }

    @Test func `the limits are those of verifications in flight`() {
        #expect(RecentRevocations.limit == 4_096 && RecentRevocations.pruneInterval == 1_000_000_000)
        #expect(Self.lifetime == 20_000_000_000)
    }

    @Test func `a result that was requested at the time of the revocation or before is void`() {
        var revocations = RecentRevocations()
        let isEmpty = !revocations.contains(7, since: start)
        revocations.add([7, 8], at: start)
        #expect(isEmpty && revocations.count == 2)
        let times: [(Int64, Bool)] = [
            (start - 1, true), (start, true), (start + 1, false), (.min, true), (.max, false),
        ]
        for (time, isVoid) in times {
            #expect(revocations.contains(7, since: time) == isVoid && revocations.contains(8, since: time) == isVoid)
            #expect(!revocations.contains(9, since: time))
        }
    }

    @Test func `a second revocation of the same credential counts from its own time`() {
        var revocations = RecentRevocations()
        revocations.add([7], at: start)
        revocations.add([7, 7], at: start + 5)
        #expect(revocations.count == 1)
        #expect(revocations.contains(7, since: start + 5) && !revocations.contains(7, since: start + 6))
    }

    @Test func `no revocation is dropped while there are no more than the limit`() {
        var revocations = RecentRevocations()
        revocations.add(ids(Self.limit), at: start)
        revocations.add([], at: start + 100 * Self.lifetime)
        #expect(revocations.count == Self.limit && revocations.contains(1, since: start))
        // The one that exceeds the limit is counted when the next are added.
        revocations.add([0], at: start + 100 * Self.lifetime)
        #expect(revocations.count == Self.limit + 1)
        revocations.add([], at: start + 100 * Self.lifetime)
        #expect(revocations.count == 1 && revocations.contains(0, since: start))
    }

    @Test func `revocations are kept exactly as long as a verification may refer to them`() {
        var revocations = RecentRevocations()
        revocations.add(ids(Self.limit), at: start)
        revocations.add([9_999], at: start - 1)
        revocations.add([], at: start + Self.lifetime)
        #expect(revocations.count == Self.limit)
        #expect(!revocations.contains(9_999, since: .min) && revocations.contains(1, since: start))
    }

    @Test func `old revocations are looked for once in an interval`() {
        var revocations = RecentRevocations()
        revocations.add(ids(Self.limit + 1), at: start)
        let looked = start + Self.lifetime
        var counts: [Int] = []
        for time in [looked, looked + RecentRevocations.pruneInterval - 1, looked + RecentRevocations.pruneInterval] {
            revocations.add([], at: time)
            counts.append(revocations.count)
        }
        #expect(counts == [Self.limit + 1, Self.limit + 1, 0])
    }

    @Test func `a revocation that is repeated is kept for longer`() {
        var revocations = RecentRevocations()
        revocations.add(ids(Self.limit + 1), at: start)
        revocations.add([7], at: start + 1)
        revocations.add([], at: start + Self.lifetime + 1)
        #expect(revocations.count == 1 && revocations.contains(7, since: start + 1))
    }
}

@Suite struct RetainedTokenTests {
    @Test func `a token is valid, for no other route and due at no time, until a message says otherwise`() {
        let retained = RetainedToken(token: Secret("mat_1"), form: .session)
        #expect(retained.state == .valid && retained.route == -1 && retained.dueAt == 0 && retained.isSession)
        let text = retained.token.withBytes { String(decoding: $0, as: UTF8.self) }
        #expect(text == "mat_1" && "\(retained.token)" == "<redacted>")
        #expect(RetainedToken(token: Secret("x"), form: .cookie).isSession)
        #expect(!RetainedToken(token: Secret("x"), form: .direct).isSession)
    }

    @Test func `reevaluations are equal for the same route alone`() {
        let all: [Reevaluation] = [.stays, .ends, .revalidate(route: 0), .revalidate(route: 1)]
        for (index, one) in all.enumerated() {
            #expect(all.firstIndex(of: one) == index)
        }
    }
}

@Suite struct RevocationIDTests {
    /// Other instances compute the same: the first eight bytes of SHA-256, computed independently.
    private static let known: [(String, UInt64)] = [
        ("usr_1", 0x777A_14C8_DB60_0D7C), ("tokens:ada", 0x3FDE_B199_ECE2_F56F), ("", 0x27F7_9602_37ED_EA7F),
        (" ", 0xBCAF_C842_BB15_85FE),
    ]

    @Test(arguments: known)
    func `the ID of a subject is fixed`(subject: String, expected: UInt64) {
        #expect(SubjectRevocationID.of(subject) == expected)
    }

    @Test func `subjects are hashed by their bytes`() {
        let (composed, decomposed) = ("usr_\u{e9}", "usr_e\u{301}")
        #expect(composed == decomposed)
        #expect(SubjectRevocationID.of(composed) != SubjectRevocationID.of(decomposed))
    }
}
