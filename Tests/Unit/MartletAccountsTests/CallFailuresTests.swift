import MartletCore
import Testing

@testable import MartletAccounts

@Suite struct `Calls that fail at a store that is there` {
    private static let gone = AccountError.unavailable(.accountsFailed, "relation \"users\" does not exist")
    private var failures = CallFailures()

    private static func at(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }

    @Test mutating func `are over when the same operation works, whatever others do`() {
        failures.ended([.findUser], Self.gone, at: Self.at(1))
        #expect(failures.failure?.message == Self.gone.message)
        failures.ended([.users], nil, at: Self.at(100))
        #expect(failures.failure != nil)
        // It was executed, and says no.
        failures.ended([.findUser], AccountError(.accountsFailed, .notFound, "no such user"), at: Self.at(101))
        #expect(failures.failure == nil)
    }

    @Test mutating func `of one reason are over together, so that a rare one does not stay`() {
        let full = AccountError.unavailable(.accountsFull, "no disk space left")
        failures.ended([.findUser], Self.gone, at: Self.at(1))
        failures.ended([.noteLogin], full, at: Self.at(2))
        failures.ended([.addUser], full, at: Self.at(3))
        failures.ended([.noteLogin], nil, at: Self.at(4))
        #expect(failures.failure?.message == Self.gone.message)
        failures.ended([.findUser], nil, at: Self.at(5))
        #expect(failures.failure == nil)
    }

    @Test(arguments: [AccountError.timeout, .postgreSQLBusy])
    mutating func `because of a lock are over when any call works after a while`(error: AccountError) {
        failures.ended([.lock, .findUser], error, at: Self.at(1))
        failures.ended([.users], nil, at: Self.at(10))
        #expect(failures.failure?.code == error.code)
        failures.ended([.users], nil, at: Self.at(11))
        #expect(failures.failure == nil)
    }

    @Test(arguments: [AccountError.saturated, .stopped, .notStarted, .corrupt, .migrating, .connectionLost])
    mutating func `say nothing where the gateway, a connection or one account is the reason`(error: AccountError) {
        failures.ended([.findUser], error, at: Self.at(1))
        #expect(failures.failure == nil)
    }
}
