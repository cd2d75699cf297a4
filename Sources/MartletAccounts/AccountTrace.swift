internal import MartletTracing

/// Calls of the account store in the traces of the requests that they are for.
enum AccountTrace {
    /// Records a call; its queries and their values stay out of the trace.
    /// - Parameter system: as OpenTelemetry names the database.
    static func span<Value>(
        of system: String, _ call: () async throws(AccountError) -> Value
    ) async throws(AccountError) -> Value {
        guard TraceScope.isSampled else { return try await call() }
        return try await TraceScope.span("accounts", .client, [SpanAttribute("db.system.name", system)], call)
    }
}
