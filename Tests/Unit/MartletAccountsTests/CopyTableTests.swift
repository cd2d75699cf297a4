import MartletCore
import MartletTesting
import Testing

@testable import MartletAccounts

@Suite struct `The tables of a copy` {
    @Test func `are all tables of the schema with all their columns`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("martlet.db")
        try SQLiteConnection.create(path)
        let connection = try SQLiteConnection(path: path, for: .writing, busyTimeout: .seconds(1))
        _ = try connection.transact(Schema(.sqlite).upgrade)
        func texts(_ query: String) throws -> [[String?]] {
            try connection.read(ReadOperation(queries: [Query(.plain(query))]) { $0[0].map(\.columns) })
        }
        let names = try texts("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        let others: Set = ["martlet_schema", "leases"]
        #expect(Set(names.compactMap(\.first)).subtracting(others) == Set(CopyTable.all.map(\.name)))
        for table in CopyTable.all {
            let columns = try texts("SELECT name, type, pk FROM pragma_table_info('\(table.name)')")
            #expect(Set(columns.map { $0[0] }) == Set(table.columns.map(\.name)), "\(table.name)")
            let integers = table.columns.filter(\.isInteger).map(\.name)
            #expect(Set(columns.filter { $0[1] == "INTEGER" }.map { $0[0] }) == Set(integers), "\(table.name)")
            let keys = columns.filter { $0[2] != "0" }.sorted { ($0[2] ?? "") < ($1[2] ?? "") }.map { $0[0] }
            #expect(keys == table.columns.prefix(table.keyCount).map(\.name), "\(table.name)")
        }
    }

    @Test func `texts of any kind are arrays of PostgreSQL, but NUL is not stored`() throws {
        let table = try #require(CopyTable.all.first { $0.name == "grant_keys" })
        let rows = [Row(columns: ["a\"b\\", "{NULL,}"]), Row(columns: ["", nil])]
        let values = try table.replacement(rows).values.map { value in
            if case .text(let text) = value { text } else { "" }
        }
        #expect(values == [#"{"a\"b\\",""}"#, #"{"{NULL,}",NULL}"#])
        #expect(throws: AccountError.self) { try table.removal([Row(columns: ["a\0b", "c"])]) }
    }

    @Test func `keys are ordered by their bytes, and numbers by their values`() throws {
        let texts = try #require(CopyTable.all.first { $0.name == "notifications" })
        func isBefore(_ table: CopyTable, _ left: [String], _ right: [String]) throws -> Bool {
            try table.isBefore(Row(columns: left), Row(columns: right))
        }
        #expect(try isBefore(texts, ["a", "z"], ["b", "a"]))
        #expect(try isBefore(texts, ["a", "Z"], ["a", "a"]))
        #expect(try !isBefore(texts, ["a", "b"], ["a", "b"]))
        #expect(try isBefore(texts, ["a", "e\u{301}"], ["a", "\u{E9}"]))
        let numbers = try #require(CopyTable.all.first { $0.name == "jobs" })
        #expect(try isBefore(numbers, ["9"], ["10"]))
    }
}
