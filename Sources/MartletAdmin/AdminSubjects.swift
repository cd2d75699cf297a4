internal import MartletAccounts
internal import MartletIdentities
internal import MartletJSON
internal import MartletResponder

/// `/subjects/{subject}`: GET shows the account of a subject, DELETE deletes it; POST to `/disable` and `/enable` blocks
/// its credentials and lets them in again.
struct AdminSubjects {
    private let accounts: OperatorAccounts?

    /// - Parameter accounts: `nil` without accounts.
    init(_ accounts: OperatorAccounts?) { self.accounts = accounts }

    /// Responds to a request with a method that the resource has.
    func respond(to request: LocalRequest, _ resource: AdminResource) async -> LocalResponse {
        let missing = AdminProblem.notFound.response(request.requestID)
        guard let accounts else { return missing }
        do throws(AccountError) {
            let shown: String
            switch resource {
            case .subject(let subject) where request.method == "DELETE":
                return try await accounts.delete(subject) ? .adminDone : missing
            case .disable(let subject), .enable(let subject):
                guard try await accounts.setDisabled(subject, resource == .disable(subject: subject)) else {
                    return missing
                }
                shown = subject
            case .subject(let subject): shown = subject
            default: return missing
            }
            return try await accounts.document(of: shown).map { .admin(.object($0)) } ?? missing
        } catch {
            return AdminProblem.outage(error.code, error.message).response(request.requestID)
        }
    }
}
