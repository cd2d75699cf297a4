/// Handles requests on a listener before anything is routed.
package final class ListenerHandler: Sendable {
    /// The one path that it accepts; `nil` accepts all.
    private let path: [UInt8]?
    package let respond: LocalHandler

    /// - Parameter path: `nil` accepts every request.
    package init(path: String? = nil, _ respond: @escaping LocalHandler) {
        self.path = path.map { Array($0.utf8) }
        self.respond = respond
    }

    /// Whether it handles requests for a path, as received.
    package func handles(_ received: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let path else { return true }
        return unsafe path.count == received.count && path.elementsEqual(received)
    }
}
