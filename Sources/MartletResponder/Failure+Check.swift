internal import MartletCore
package import MartletHTTP

/// Error responses to checks: a proxy passes on what it knows, and makes its own error of the rest.
extension Failure {
    /// A check that does not say which request it is about.
    package static func check(_ error: CheckError) -> Failure {
        var failure = malformed(error.code)
        failure.condition = error.field?.name
        return failure
    }

    /// A check that comes from no trusted proxy.
    package static let checkFromUntrustedPeer = noRoute("check.untrusted_peer")

    /// The same of one by gRPC, where it is PERMISSION_DENIED.
    package static var callFromUntrustedPeer: Failure {
        var failure = checkFromUntrustedPeer
        failure.status = 403
        return failure
    }

    /// The response to a check whose request is rejected like this.
    ///
    /// No route, or none for the method, is 403 with the same code. What concerns the request, not the check, does not
    /// close the proxy's connection.
    /// - Parameter deniesAlike: whether 400, 429 and 503 are 403, too.
    package func ofCheck(deniesAlike: Bool) -> Failure {
        var failure = self
        if status == 400 { failure.closes = false }
        switch status {
        case 404, 405: failure.status = 403
        case 400, 429, 503: if deniesAlike { failure.status = 403 }
        default: break
        }
        return failure
    }
}
