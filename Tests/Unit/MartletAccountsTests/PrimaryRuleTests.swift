import MartletCore
import Testing

@testable import MartletAccounts

@Suite struct PrimaryRuleTests {
    private func role(_ timeline: UInt32?, standby: Bool = false, readOnly: Bool = false) -> ServerRole {
        ServerRole(isStandby: standby, isReadOnly: readOnly, timeline: timeline)
    }

    @Test func `uses primaries only`() {
        var rule = PrimaryRule(acceptsReadOnly: false)
        #expect(rule.reason(against: role(nil, standby: true))?.code == .accountsReadOnly)
        #expect(rule.reason(against: role(1, readOnly: true))?.code == .accountsReadOnly)
        #expect(rule.timeline == 0)
        #expect(rule.reason(against: role(1)) == nil)
        // A server that does not tell its timeline is not compared.
        #expect(rule.reason(against: role(nil)) == nil)
    }

    @Test func `leaves a primary that was replaced`() {
        var rule = PrimaryRule(acceptsReadOnly: false)
        #expect(rule.reason(against: role(2)) == nil)
        #expect(rule.reason(against: role(1))?.code == .accountsOldPrimary)
        #expect(rule.reason(against: role(2)) == nil)
        #expect(rule.reason(against: role(.max)) == nil)
        #expect(rule.reason(against: role(2))?.code == .accountsOldPrimary)
    }

    @Test func `commands that only read use standbys`() {
        var rule = PrimaryRule(acceptsReadOnly: true)
        #expect(rule.reason(against: role(nil, standby: true, readOnly: true)) == nil)
    }

    @Test func `reads what a server says`() throws {
        let row = Row(columns: ["0", "1", "0000000A"])
        #expect(try ServerRole.read([row]) == role(10, readOnly: true))
        #expect(try ServerRole.read([Row(columns: ["1", "1", nil])]) == role(nil, standby: true, readOnly: true))
        for columns: [String?] in [[], ["0"], ["0", "0"], ["0", "0", "A"], ["0", "0", "0000000G"], [nil, "0", nil]] {
            #expect(throws: AccountError.self) { try ServerRole.read([Row(columns: columns)]) }
        }
        #expect(throws: AccountError.self) { try ServerRole.read([]) }
    }

    @Test(arguments: ["08006", "57P01", "57P02", "57P03", "40003"])
    func `a commit with this state may have succeeded`(state: String) {
        #expect(PostgreSQLBatchError.statementFailed(state: state).leavesCommitUnknown)
        #expect(PostgreSQLBatchError.connectionLost.leavesCommitUnknown)
    }

    @Test(arguments: ["25006", "40001", "53100"])
    func `a commit with this state has failed`(state: String) {
        #expect(!PostgreSQLBatchError.statementFailed(state: state).leavesCommitUnknown)
    }

    @Test func `a server that takes no writes is left`() {
        guard case .leave(let error) = PostgreSQLBatchError.statementFailed(state: "25006").recovery else {
            Issue.record("not left")
            return
        }
        #expect(error.code == .accountsReadOnly)
    }

    @Test(
        arguments: [
            ("42501", "permission denied for schema public", "GRANT CREATE ON SCHEMA public"),
            ("42501", "permission denied for table users", "all rights"),
            ("42P01", "relation \"users\" does not exist", "of its own"),
            ("42703", "column \"x\" does not exist", "of its own"), ("53300", "too many connections", "too many"),
            ("57P01", "terminating connection due to administrator command", "administrator"),
        ])
    func `the server's message is kept where it has no data, with a hint`(state: String, message: String, hint: String)
    {
        let error = PostgreSQLBatchError.statementFailed(state: state, message: message + "\nDETAIL: x")
        let text = error.serverMessage ?? ""
        #expect(text.contains(message) && text.contains(hint) && !text.contains("DETAIL"), "\(text)")
        guard case .fail(let failure) = error.recovery else { return }
        #expect(failure.message.contains(message) && failure.message.contains(state))
    }

    @Test(arguments: ["22001", "23514", "57014", "XX000"])
    func `the server's message is not kept where it may have data`(state: String) {
        let error = PostgreSQLBatchError.statementFailed(state: state, message: "invalid input \"secret\"")
        #expect(error.serverMessage == nil)
        if case .fail(let failure) = error.recovery { #expect(!failure.message.contains("secret")) }
    }

    @Test func `settings end with their transaction`() {
        var options = PostgreSQLOptions()
        #expect(
            options.settings(isReading: true).statement.text(.postgresql)
                == "SELECT set_config('statement_timeout', '2000', true), set_config('lock_timeout', '1500', true)")
        options.isReadOnly = true
        let text = options.settings(isReading: false).statement.text(.postgresql)
        #expect(text.hasSuffix("set_config('transaction_read_only', 'on', true)"))
    }
}
