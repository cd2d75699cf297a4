/// What has arrived of a response: up to a limit, and kept where it is wanted.
package struct ResponseIntake: Sendable {
    private let headLimit: Int
    private let bodyLimit: Int
    private let keepsHead: Bool
    private let keepsBody: Bool
    private var headBytes = 0
    private var bodyBytes = 0
    /// Its lines, those of interim responses and of trailers among them.
    package private(set) var head: [UInt8] = []
    package private(set) var body: [UInt8] = []

    package init(headLimit: Int = 64 * 1024, bodyLimit: Int, keepsHead: Bool = false, keepsBody: Bool = true) {
        (self.headLimit, self.bodyLimit) = (headLimit, bodyLimit)
        (self.keepsHead, self.keepsBody) = (keepsHead, keepsBody)
    }

    package var isHeadTooLarge: Bool { headBytes > headLimit }
    package var isBodyTooLarge: Bool { bodyBytes > bodyLimit }

    /// Takes a line of a head or of trailers.
    /// - Returns: whether that much is read.
    package mutating func add(head bytes: UnsafeRawBufferPointer) -> Bool {
        headBytes += bytes.count
        if keepsHead, !isHeadTooLarge { unsafe head.append(contentsOf: bytes) }
        return !isHeadTooLarge
    }

    /// Takes bytes of the body.
    /// - Returns: whether that much is read.
    package mutating func add(body bytes: UnsafeRawBufferPointer) -> Bool {
        bodyBytes += bytes.count
        if keepsBody, !isBodyTooLarge { unsafe body.append(contentsOf: bytes) }
        return !isBodyTooLarge
    }
}
