package import MartletCore
package import MartletIO

/// The schema version of a database, beside that of this program.
package struct SchemaVersions: Sendable, Equatable {
    /// How both compare.
    package enum State: String, Sendable {
        case behind, current
        /// The version after this program's: the program runs on it.
        case next
    }

    /// That of the database; 0 without tables.
    package let found: Int64
    /// The newest one that this program can create.
    package let latest: Int64

    package var state: State { found < latest ? .behind : found == latest ? .current : .next }
}

/// Compares and migrates the schema of an account store, for commands.
package struct AccountMigration: Sendable {
    /// How long it waits for others that migrate or use the tables, and for large tables.
    private static let timeout = Duration.seconds(610)
    private static let pause = Duration.milliseconds(200)

    private let schema: Schema
    private let clock: Clock
    private let make: @Sendable (_ readOnly: Bool) throws(AccountError) -> any AccountEngine

    /// - Parameters:
    ///   - url: the database.
    ///   - pool: the timeout of a statement other than migrations.
    package init(
        _ url: AccountURL, pool: AccountPool, clock: Clock, logger: Logger, loop: ServiceLoop, resolver: Resolver
    ) {
        self.clock = clock
        switch url {
        case .sqlite(let path):
            let schema = Schema(.sqlite)
            self.schema = schema
            make = { readOnly in
                var options = SQLiteOptions()
                options.isReadOnly = readOnly
                options.acceptsAnySchema = true
                return SQLiteEngine(path: path, options: options, schema: schema, clock: clock, logger: logger)
            }
        case .postgresql(let text):
            let schema = Schema(.postgresql)
            self.schema = schema
            make = { readOnly throws(AccountError) in
                var options = PostgreSQLOptions()
                options.isReadOnly = readOnly
                options.acceptsAnySchema = true
                options.connections = 1
                options.callTimeout = pool.statementTimeout
                options.transactionTimeout = Self.timeout
                return PostgreSQLEngine(
                    try PostgreSQLTarget(text), options: options, schema: schema, loop: loop, resolver: resolver,
                    clock: clock, logger: logger)
            }
        }
    }

    /// Compares the versions, and creates and changes nothing.
    /// - Throws: `accounts.schema_newer` as well.
    package func check() async throws(AccountError) -> SchemaVersions {
        do throws(AccountError) {
            return try await withEngine(readOnly: true) { engine throws(AccountError) in try await versions(engine) }
        } catch {
            // There is no file.
            guard error.code == .accountsSchemaMissing else { throw error }
            return SchemaVersions(found: 0, latest: schema.latest)
        }
    }

    /// Creates what is missing and applies all pending migrations.
    /// - Returns: the versions before.
    /// - Throws: `accounts.schema_newer` as well.
    package func run() async throws(AccountError) -> SchemaVersions {
        try await withEngine(readOnly: false) { engine throws(AccountError) in
            let before = try await versions(engine)
            guard before.state == .behind else { return before }
            let deadline = clock.monotonicTime + Self.timeout
            while true {
                do throws(AccountError) {
                    // Another instance may have been faster.
                    return SchemaVersions(found: try await engine.transact(schema.upgrade), latest: schema.latest)
                } catch {
                    guard error.code == .accountsBusy, clock.monotonicTime < deadline else { throw error }
                }
                try? await Task.sleep(for: Self.pause)
            }
        }
    }

    private func versions(_ engine: any AccountEngine) async throws(AccountError) -> SchemaVersions {
        let found = try await engine.read(schema.exists) ? try await engine.read(schema.version) : 0
        guard found <= schema.latestAccepted else { throw .schemaNewer }
        return SchemaVersions(found: found, latest: schema.latest)
    }

    private func withEngine(
        readOnly: Bool, _ body: (any AccountEngine) async throws(AccountError) -> SchemaVersions
    ) async throws(AccountError) -> SchemaVersions {
        let engine = try make(readOnly)
        let outcome: Result<SchemaVersions, AccountError>
        do throws(AccountError) {
            try await engine.start()
            outcome = .success(try await body(engine))
        } catch {
            outcome = .failure(error)
        }
        await engine.shutdown()
        return try outcome.get()
    }
}
