/// Watches requests as they finish, from any event loop; it must not block.
package protocol RequestWatching: AnyObject, Sendable {
    /// Whether the access line of another request is wanted now.
    func wantsLine() -> Bool
    /// Takes the access line of a finished request, as JSON.
    func finished(_ line: [UInt8])
}
