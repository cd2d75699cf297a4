/// An error code of RST_STREAM and GOAWAY (RFC 9113 §7).
package struct HTTP2Code: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let noError = HTTP2Code(rawValue: 0)
    package static let protocolError = HTTP2Code(rawValue: 1)
    package static let internalError = HTTP2Code(rawValue: 2)
    package static let flowControlError = HTTP2Code(rawValue: 3)
    package static let streamClosed = HTTP2Code(rawValue: 5)
    package static let frameSizeError = HTTP2Code(rawValue: 6)
    /// The request was not processed and may be retried.
    package static let refusedStream = HTTP2Code(rawValue: 7)
    package static let cancel = HTTP2Code(rawValue: 8)
    package static let connectError = HTTP2Code(rawValue: 10)
    package static let enhanceYourCalm = HTTP2Code(rawValue: 11)
}
