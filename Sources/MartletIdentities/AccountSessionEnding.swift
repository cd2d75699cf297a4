package import MartletAccounts
package import MartletSession

/// Ends an account's sessions and every cached decision that would still admit it.
package protocol AccountSessionEnding: Sendable {
    /// A page of the live sessions of an account.
    /// - Parameter start: the `next` of the page before; `nil` for the first page.
    func page(of subject: String, from start: SessionPosition?) async throws(SessionError) -> SessionPage
    /// Ends an account's sessions and invalidates cached results, in all loops of all instances. Logins in progress
    /// leave no session, unless the end concerns certain sessions only.
    func end(_ end: SessionsEnd, of subject: String) async throws(SessionError)
}
