internal import MartletIO
internal import MartletResponder

/// Who may change something, or read about users: clients on this machine, but not web pages (CSRF).
///
/// Browsers send the page's origin with every request that changes something, and a form has one of three media types.
enum AdminProtection {
    private static let formTypes = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"]

    /// The rejection of a request; `nil` if it is allowed.
    static func rejection(of request: LocalRequest) -> AdminProblem? {
        if isFromPage(request) { return AdminProblem(status: 403, code: "cross_site", allow: nil) }
        guard let local = request.local, local.isUnix || local.isLoopback else {
            return AdminProblem(status: 403, code: "local_only", allow: nil)
        }
        return nil
    }

    private static func isFromPage(_ request: LocalRequest) -> Bool {
        if ["Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode"].contains(where: { request.field($0) != nil }) { return true }
        let type = request.field("Content-Type")?.lowercased().prefix { $0 != ";" }
        return type.map { formTypes.contains($0.filter { $0 != " " }) } ?? false
    }
}
