import MartletAccounts
import MartletConfig
import MartletCore
import MartletEvents
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletIdentities

/// An issuer of two teams, whose responses a test scripts.
private final class MovingIssuer: Transferring {
    struct Configuration: ConfigurationDecodable {
        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
    }

    static let kind: ProviderKind = "apple"
    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    typealias Script = @Sendable (_ name: String, _ call: Int) throws(AuthenticationError) -> Void

    let team: String?
    let transferRate = RequestRate(count: 5)
    let recognizesTransfers: Bool
    private let script: Script
    let asked = Box<[String]>([])
    let prepared = Box(0)

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        (team, recognizesTransfers, script) = (nil, false, { _, _ in })
    }

    init(_ team: String, recognizes: Bool = true, _ script: @escaping Script = { _, _ in }) {
        (self.team, recognizesTransfers, self.script) = (team, recognizes, script)
    }

    func transfer(of identity: Identity, at now: UnixTime) -> IdentityTransfer? {
        identity.claims["way"]?.string.map {
            IdentityTransfer(transferSubject: $0, fromTeam: Stage.oldTeam, toTeam: Stage.newTeam)
        }
    }

    func prepareTransfers(until deadline: MonotonicTime) async throws(AuthenticationError) {
        prepared.withLock { $0 += 1 }
    }

    private func call(_ name: String) throws(AuthenticationError) {
        let count = asked.withLock { asked in
            asked.append(name)
            return asked.count { $0 == name }
        }
        try script(name, count)
    }

    func exportUser(
        _ subject: String, to team: String, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> String {
        try call(subject)
        return "way-\(subject)"
    }

    func importUser(
        _ transferSubject: String, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> String {
        try call(transferSubject)
        return "new-\(transferSubject.dropFirst("way-".count))"
    }

    var handle: ProviderHandle { ProviderHandle(self, name: "apple") }
}

extension Stage {
    fileprivate static let oldTeam = "OLDTEAM123"
    fileprivate static let newTeam = "NEWTEAM123"

    fileprivate func run(
        _ issuer: MovingIssuer, _ failures: Box<[TransferFailure]> = Box([]), on time: SimulatedTime = SimulatedTime()
    ) -> TransferRun {
        // Not the store's clock, whose deadlines a pause would let pass.
        TransferRun(
            TransferRun.Surroundings(
                provider: "apple", transferring: issuer, store: store.transfers, clock: time.clock,
                sleep: { time.advance(by: $0) }),
            report: { failure in failures.withLock { $0.append(failure) } })
    }

    fileprivate func export(
        _ issuer: MovingIssuer = MovingIssuer(oldTeam), on time: SimulatedTime = SimulatedTime()
    ) async throws -> TransferSummary {
        try await run(issuer, on: time).export(from: Self.oldTeam, to: Self.newTeam)
    }

    fileprivate func addUsers(_ count: Int) async throws {
        for number in 0..<count {
            _ = try await store.signIn(
                AccountIdentity(provider: "apple", subjects: ["u\(number)"]), keeping: [:], at: time.clock.unixTime)
        }
    }

    fileprivate func subject(of name: String) async throws -> String? {
        try await store.find(AccountIdentity(provider: "apple", subjects: [name]))?.subject
    }
}

extension TransferSummary {
    fileprivate var counts: [Int] { [done, already, failed] }
}

@Suite(.timeLimit(.minutes(3))) struct TransferRunTests {
    @Test func `users move at the rate, and a second run finds nothing left`() async throws {
        try await Stage.run { stage in
            try await stage.addUsers(300)
            let (exporting, time) = (MovingIssuer(Stage.oldTeam), SimulatedTime())
            let begin = time.now
            #expect(try await stage.export(exporting, on: time).counts == [300, 0, 0])
            let took = time.now - begin
            #expect((59_000...61_000).contains(took), "300 calls at 5/s take \(took) ms")
            #expect(exporting.prepared.value == 1)
            #expect(try await stage.export(exporting).counts == [0, 300, 0])
            #expect(exporting.asked.value.count == 300 && Set(exporting.asked.value).count == 300)

            let importing = MovingIssuer(Stage.newTeam)
            let before = try await stage.subject(of: "u7")
            #expect(try await stage.run(importing).importUsers(to: Stage.newTeam).counts == [300, 0, 0])
            #expect(try await stage.run(importing).importUsers(to: Stage.newTeam).counts == [0, 300, 0])
            #expect(importing.asked.value.count == 300)
            #expect(try await stage.subject(of: "new-u7") == before && before != nil)
            #expect(try await stage.events().count { $0.type == .identityTransferred } == 300)
            #expect(try await stage.export().counts == [0, 300, 0], "not exported again")
        }
    }

    @Test func `a trial only counts`() async throws {
        try await Stage.run { stage in
            try await stage.addUsers(20)
            let issuer = MovingIssuer(Stage.oldTeam)
            let trial = try await stage.run(issuer).export(from: Stage.oldTeam, to: Stage.newTeam, isTrial: true)
            #expect(trial.counts == [20, 0, 0] && issuer.asked.value.isEmpty)
            #expect(try await stage.export().counts == [20, 0, 0])
            let importing = try await stage.run(issuer).importUsers(to: Stage.newTeam, isTrial: true)
            #expect(importing.counts == [20, 0, 0] && issuer.asked.value.isEmpty)
        }
    }

    @Test func `users who cannot move do not stop the others`() async throws {
        try await Stage.run { stage in
            let grants = ScriptedIssuer()
            for number in 0..<10 { try await stage.logIn("u\(number)", grant: nil, by: grants) }
            for (number, change) in [(1, ProviderNotification.Change.consentRevoked), (2, .accountDeleted)] {
                let notification = ProviderNotification(
                    id: "n\(number)", type: "test", subject: "u\(number)", time: stage.time.now, change: change)
                _ = try await stage.store.life.file(
                    notification, from: NotificationSource(provider: "apple", kind: "apple"), deletion: Stage.policy,
                    at: stage.time.now)
            }
            let failures = Box<[TransferFailure]>([])
            let issuer = MovingIssuer(Stage.oldTeam) { (name, _) throws(AuthenticationError) in
                if name == "u3" { throw .rejected("apple.invalid_request") }
                if name == "u4" { throw .unavailable("apple.api_bad_response") }
            }
            let summary = try await stage.run(issuer, failures).export(from: Stage.oldTeam, to: Stage.newTeam)
            #expect(summary.counts == [6, 0, 4] && summary.stop == nil)
            let reasons = Dictionary(failures.value.map { ($0.subject, $0.reason.rawValue) }) { first, _ in first }
            #expect(
                reasons == [
                    "u1": "identity.revoked", "u2": "identity.deleted", "u3": "apple.invalid_request",
                    "u4": "apple.api_bad_response",
                ])
            #expect(failures.value.allSatisfy { $0.account?.hasPrefix("usr_") == true })
            #expect(issuer.asked.value.count { $0 == "u4" } == 3)
            #expect(!issuer.asked.value.contains("u1") && !issuer.asked.value.contains("u2"))
        }
    }

    @Test func `throttling pauses all calls for as long as it says`() async throws {
        try await Stage.run { stage in
            try await stage.addUsers(20)
            let time = SimulatedTime()
            let begin = time.now
            let issuer = MovingIssuer(Stage.oldTeam) { (name, call) throws(AuthenticationError) in
                if name == "u5", call <= 5 { throw .throttled("apple.api_throttled", retryAfter: .seconds(30)) }
            }
            #expect(try await stage.export(issuer, on: time).counts == [20, 0, 0])
            #expect(time.now - begin >= 150_000, "\(time.now - begin)")
            #expect(issuer.asked.value.count == 25)
        }
    }

    @Test func `an outage, and calls that are refused, stop the run, which goes on later`() async throws {
        try await Stage.run { stage in
            try await stage.addUsers(40)
            let down = MovingIssuer(Stage.oldTeam) { (_, _) throws(AuthenticationError) in
                throw .unavailable("apple.api_unreachable")
            }
            let outage = try await stage.export(down)
            #expect(outage.stop == "apple.api_unreachable" && outage.done == 0)
            #expect(down.asked.value.count <= 6 * 8, "\(down.asked.value.count)")
            let refusing = MovingIssuer(Stage.oldTeam) { (name, _) throws(AuthenticationError) in
                if name == "u20" { throw .denied("apple.invalid_client") }
            }
            let refused = try await stage.export(refusing)
            #expect(refused.stop == "apple.invalid_client")
            let rest = try await stage.export()
            #expect(rest.counts == [40 - refused.done, refused.done, 0])
        }
    }

    @Test func `a new subject that has an account already is a conflict`() async throws {
        try await Stage.run { stage in
            try await stage.addUsers(2)
            _ = try await stage.export()
            _ = try await stage.store.signIn(
                AccountIdentity(provider: "apple", subjects: ["new-u0"]), keeping: [:], at: stage.time.clock.unixTime)
            let failures = Box<[TransferFailure]>([])
            let summary = try await stage.run(MovingIssuer(Stage.newTeam), failures).importUsers(to: Stage.newTeam)
            #expect(summary.counts == [1, 0, 1])
            #expect(failures.value.map(\.reason) == [.transferConflict])
        }
    }

    @Test func `a file of another store is adopted before the import`() async throws {
        try await Stage.run { stage in
            try await stage.addUsers(3)
            func user(_ number: Int, to team: String = Stage.newTeam) -> RecordedTransfer {
                RecordedTransfer(
                    transfer: IdentityTransfer(
                        transferSubject: "way-u\(number)", fromTeam: Stage.oldTeam, toTeam: team),
                    oldSubject: "u\(number)", isDone: false)
            }
            func importAll(_ users: [RecordedTransfer], isTrial: Bool = false) async throws -> [Int] {
                let run = stage.run(MovingIssuer(Stage.newTeam))
                for user in users { try await run.adopt(user, by: Stage.newTeam, isTrial: isTrial) }
                return try await run.importUsers(to: Stage.newTeam, isTrial: isTrial).counts
            }
            let users = [user(0), user(1), user(7), user(2, to: "OTHERTEAM1")]
            #expect(try await importAll(users, isTrial: true) == [2, 0, 2])
            #expect(try await importAll(users) == [2, 0, 2])
            #expect(try await importAll(users) == [0, 2, 2])
            #expect(try await stage.subject(of: "new-u1") == stage.subject(of: "u1"))
        }
    }
}

@Suite(.timeLimit(.minutes(3))) struct TransferredIdentitiesTests {
    private func identity(_ subject: String, way: String?, _ stage: Stage) -> Identity {
        let now = stage.time.clock.unixTime
        return Identity(
            providerSubject: subject, issuer: "https://appleid.apple.com",
            claims: way.map { ["way": .string($0)] } ?? [:], authTime: now, issuedAt: now,
            expiresAt: now.advanced(bySeconds: 600))
    }

    private func recognizer(
        _ stage: Stage, _ issuer: MovingIssuer = MovingIssuer(Stage.newTeam)
    ) throws
        -> TransferredIdentities
    {
        try #require(
            TransferredIdentities(
                stage.store, stage.store.transfers, providers: [issuer.handle], clock: stage.time.clock, logger: .silent
            ))
    }

    @Test func `a credential that names an exported user re-keys the identity, once`() async throws {
        try await Stage.run { stage in
            try await stage.addUsers(2)
            _ = try await stage.export()
            let recognizer = try recognizer(stage)
            let before = try await stage.subject(of: "u0")
            for _ in 0..<3 { try await recognizer.follow(identity("n0", way: "way-u0", stage), provider: "apple") }
            #expect(try await stage.subject(of: "n0") == before)
            // Another user with the same claim gets nothing.
            try await recognizer.follow(identity("n9", way: "way-u0", stage), provider: "apple")
            #expect(try await stage.subject(of: "n9") == nil)
            #expect(try await stage.events().count { $0.type == .identityTransferred } == 1)
        }
    }

    @Test func `no others are touched`() async throws {
        try await Stage.run { stage in
            try await stage.addUsers(2)
            let recognizer = try recognizer(stage)
            try await recognizer.follow(identity("n0", way: "way-u0", stage), provider: "apple")
            #expect(try await stage.subject(of: "n0") == nil, "not exported")
            _ = try await stage.export()
            try await recognizer.follow(identity("n0", way: nil, stage), provider: "apple")
            try await recognizer.follow(identity("n0", way: "way-u0", stage), provider: "web")
            #expect(try await stage.subject(of: "n0") == nil)
            // Who is known already stays who he is.
            try await recognizer.follow(identity("u1", way: "way-u0", stage), provider: "apple")
            #expect(try await stage.subject(of: "u1") != stage.subject(of: "u0"))
            #expect(try await stage.events().allSatisfy { $0.type != .identityTransferred })
            let quiet = MovingIssuer(Stage.newTeam, recognizes: false).handle
            #expect(
                TransferredIdentities(
                    stage.store, stage.store.transfers, providers: [quiet], clock: stage.time.clock, logger: .silent)
                    == nil)
        }
    }
}
