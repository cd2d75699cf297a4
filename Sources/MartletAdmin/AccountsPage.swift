internal import MartletAccounts
internal import MartletCore
internal import MartletJSON
internal import MartletResponder

/// `GET /accounts` of the admin listener: the account store, and the revocations of grants that have not succeeded.
enum AccountsPage {
    /// 404 without `accounts:`.
    static func response(_ report: AdminReport, _ requestID: String) -> LocalResponse {
        guard let accounts = report.accounts else { return AdminProblem.notFound.response(requestID) }
        var document: JSONObject = ["state": .string(accounts.state.rawValue)]
        // Counted by one instance.
        if let revocations = report.backlog.revocations {
            let age = revocations.oldest.map { oldest in
                max(report.now.milliseconds.subtractingReportingOverflow(oldest).partialValue / 1000, 0)
            }
            document["revocations"] = .object([
                "pending": .integer(Int64(revocations.count)), "oldest_s": age.map { .integer($0) } ?? .null,
            ])
        }
        return LocalResponse(
            status: 200, fields: [("Content-Type", "application/json"), ("Cache-Control", "no-store")],
            body: JSON.write(document) + [0x0A])
    }
}
