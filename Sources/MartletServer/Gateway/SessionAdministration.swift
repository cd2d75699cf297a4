internal import MartletAccounts
internal import MartletAdmin
internal import MartletCore
internal import MartletJSON
internal import MartletResponder
internal import MartletSession
internal import MartletSignIn

/// The sessions of all subjects, for the admin listener of a running gateway.
struct SessionAdministration: SessionAdministering {
    let sessions: OperatorSessions
    /// `nil` without accounts.
    let accounts: AccountStore?
    let logger: Logger

    func sessions(of subject: String) async throws(AdminOutage) -> [JSONObject] {
        do throws(SessionError) { return try await sessions.entries(of: subject) } catch { throw AdminOutage(error) }
    }

    func endSession(_ id: String, of subject: String?) async throws(AdminOutage) -> Bool {
        let isKnown: Bool
        do throws(Failure) { isKnown = try await sessions.end(id, of: subject) } catch { throw AdminOutage(error) }
        if isKnown { logger.info("session ended by an operator", ("session_id", id), ("subject", subject ?? "-")) }
        return isKnown
    }

    func endSessions(of subject: String) async throws(AdminOutage) -> Bool {
        let hasSessions: Bool
        do throws(SessionError) {
            hasSessions = try await sessions.count(of: subject) > 0
        } catch {
            throw AdminOutage(error)
        }
        if !hasSessions {
            // A login in progress of an account is about to create one.
            do throws(AccountError) {
                guard try await accounts?.account(subject) != nil else { return false }
            } catch {
                throw AdminOutage(error)
            }
        }
        do throws(Failure) { try await sessions.endAll(of: subject) } catch { throw AdminOutage(error) }
        logger.info("sessions ended by an operator", ("subject", subject))
        return true
    }
}

extension AdminOutage {
    init(_ error: SessionError) { self.init(error.code, "the store is unavailable") }
    init(_ failure: Failure) { self.init(failure.reason, "the store is unavailable") }
    init(_ error: AccountError) { self.init(error.code, error.message) }
}
