internal import MartletCore

/// The next bytes of a response, collected so that they are sent with one call.
///
/// They belong to one exchange: what another one left is discarded, so it can never reach the wrong client.
struct PendingResponse: ~Copyable {
    private var exchange = Handle<Exchange>.none
    private var buffer = ByteBuffer(capacity: 128 * 1024)

    /// The bytes of an exchange; none if those of another one were collected last.
    subscript(_ exchange: Handle<Exchange>) -> ByteBuffer {
        @inline(__always) mutating _read {
            begin(exchange)
            yield buffer
        }
        @inline(__always) _modify {
            begin(exchange)
            yield &buffer
        }
    }

    /// The bytes of an exchange, to be sent now; valid until others are collected.
    @inline(__always)
    mutating func take(_ exchange: Handle<Exchange>) -> UnsafeBufferPointer<UInt8> {
        guard self.exchange == exchange else { return unsafe UnsafeBufferPointer(start: nil, count: 0) }
        defer { buffer.removeAll() }
        return unsafe buffer.bytes
    }

    @inline(__always)
    private mutating func begin(_ exchange: Handle<Exchange>) {
        guard self.exchange != exchange else { return }
        self.exchange = exchange
        buffer.removeAll()
    }
}
