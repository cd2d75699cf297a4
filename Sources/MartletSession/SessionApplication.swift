internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// The app that a session was begun with, as far as its provider says: over `max_per_subject` its own sessions make
/// room first, so that an app that signs in again and again ends no session of another one.
enum SessionApplication {
    private static let hashLength = 4

    /// The claims that name an app: WeChat's, and those of tokens.
    private static let claims = ["app_id", "aud", "azp"]

    /// A keyed hash of the app's name, which scripts compare.
    /// - Parameter isBrowser: whether the session has a cookie.
    static func hash(of identity: Identity, provider: String, isBrowser: Bool, subject: String) -> [UInt8] {
        let name = claims.lazy.compactMap { identity.claims[$0]?.string }.first ?? ""
        let text = "\(isBrowser ? "browser" : "app")\u{0}\(provider)\u{0}\(name)"
        return Array(SessionSeal.providerHash(text, of: subject).prefix(hashLength))
    }

    /// Which sessions make room.
    /// - Parameters:
    ///   - live: all of a subject, oldest first.
    ///   - count: how many have to end.
    static func surplus<Session>(of live: [Session], count: Int, isSame: (Session) -> Bool) -> [Session] {
        guard count > 0 else { return [] }
        return Array((live.filter(isSame) + live.filter { !isSame($0) }).prefix(count))
    }
}

/// The sessions that would have to end for another one: the cause of `session.contended` where they may not end by
/// themselves.
package struct SurplusSessions: Error {
    /// In the order in which they are to end.
    package let ids: [String]
}
