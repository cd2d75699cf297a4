internal import MartletCore
internal import MartletEvents
internal import MartletJSON
internal import MartletProvider

/// The revocations of an identity's former accounts that have not succeeded when its user signs in anew.
///
/// At issuers such as Apple a revocation ends the whole consent of the user, the new account's too. So it is dropped;
/// its grant becomes that of the new identity, unless the login has brought another one, and the deletion of the new
/// account revokes it.
struct SupersededRevocations: Sendable {
    private let jobs: [AccountJob]
    let accounts: [String]

    /// - Parameters:
    ///   - rows: of `revocations`, which may be of other subjects.
    ///   - subject: the identity's main subject, for which the grants are sealed.
    init(_ rows: [Row], of subject: String) throws(AccountError) {
        var jobs: [AccountJob] = []
        for row in rows {
            guard let job = try AccountJob(row), job.data["subject"]?.string?.hasSameBytes(as: subject) == true else {
                continue
            }
            jobs.append(job)
        }
        self.jobs = jobs
        accounts = Set(jobs.map(\.account)).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    var isEmpty: Bool { jobs.isEmpty }

    /// What has to be known of the former accounts: two queries for each.
    var lookups: [Query] {
        accounts.flatMap {
            [
                Query(LifeStatement.lockDeletion, .text($0)),
                Query(LifeStatement.countRevocations, .text($0), .integer(0)),
            ]
        }
    }

    /// Whether an account has no revocation left.
    func areAll(of account: String, among count: Int64) -> Bool {
        Int64(jobs.count { $0.account.hasSameBytes(as: account) }) >= count
    }

    /// Removes the jobs, and keeps their grants.
    /// - Parameter grant: the login's own.
    func queries(identity: String, grant: SealedGrant?) -> [Query] {
        jobs.flatMap { job -> [Query] in
            let removal = Query(LifeStatement.removeJob, .integer(job.number))
            guard let client = job.data["client"]?.string, let key = job.data["key_id"]?.string,
                let token = job.data["token"]?.string, grant.map({ !$0.client.hasSameBytes(as: client) }) ?? true
            else { return [removal] }
            return [removal, Query(LifeStatement.putGrant, .text(identity), .text(client), .text(key), .text(token))]
        }
    }
}
