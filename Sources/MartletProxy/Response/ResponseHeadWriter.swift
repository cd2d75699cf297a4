internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder

/// Writes the heads of responses as the client gets them.
///
/// An upstream's fields are forwarded without the hop-by-hop ones, which the parser has left out of the ranges to copy
/// where it could. Only this type and `Failure` write `Date`, `Strict-Transport-Security`, `Connection` and
/// `X-Request-Id`.
struct ResponseHeadWriter: Sendable {
    /// The client uses HTTP/1.0.
    var isHTTP10 = false
    /// The client uses an HTTP/2 stream, which has no `Connection`.
    var isStream = false
    /// The client gets the body in chunks.
    var isChunked = false
    /// The connection closes after the response.
    var closes = false
    /// `Strict-Transport-Security: max-age`, in seconds, in place of the upstream's; 0 forwards the upstream's.
    var strictTransportSeconds: Int64 = 0

    @inline(__always)
    private var isStrict: Bool { strictTransportSeconds > 0 }

    // MARK: Heads

    /// Writes the head of an upstream's final response.
    /// - Parameter framing: of the body that follows; it can differ from the head's where frames say more.
    @inline(__always)
    func write(
        _ head: borrowing ResponseHead, _ bytes: UnsafeBufferPointer<UInt8>, _ framing: BodyFraming,
        date: borrowing ByteBuffer, requestID: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        let (hasDate, hasLength) = unsafe copyHead(head, bytes, framing, into: &out)
        if !hasDate { writeDate(date, into: &out) }
        if case .length(let count) = framing, !hasLength {
            writeLength(count, into: &out)
        } else if isChunked {
            out.append("Transfer-Encoding: chunked\r\n")
        }
        writeConnection(into: &out)
        unsafe writeRequestID(requestID, into: &out)
    }

    /// Writes the head of an interim response (RFC 9110 §15.2), which gets no field of the gateway.
    func writeInterim(_ head: borrowing ResponseHead, _ bytes: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) {
        unsafe writeStatusLine(head.status, bytes[head.reason], into: &out)
        unsafe copyFields(head.fields, bytes, forwardsLength: false, into: &out)
        out.append("\r\n")
    }

    /// Writes the head of a 101 (Switching Protocols).
    func writeSwitch(
        _ head: borrowing ResponseHead, _ bytes: UnsafeBufferPointer<UInt8>, to name: UnsafeBufferPointer<UInt8>,
        requestID: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer
    ) {
        out.append("HTTP/1.1 101 Switching Protocols\r\n")
        unsafe copyFields(head.fields, bytes, forwardsLength: false, into: &out)
        out.append("Connection: Upgrade\r\nUpgrade: ")
        unsafe out.append(name)
        out.append("\r\n")
        unsafe writeRequestID(requestID, into: &out)
    }

    /// Writes the head of a response of a handler in this process.
    func writeLocal(
        _ response: LocalResponse, date: borrowing ByteBuffer, requestID: UnsafeBufferPointer<UInt8>,
        hasLength: Bool = true, into out: inout ByteBuffer
    ) {
        out.append("HTTP/1.1 ")
        out.append(decimal: response.status)
        out.append(" ")
        out.append(HTTPStatus.reason(response.status))
        out.append("\r\n")
        for field in response.fields {
            out.append(text: field.name)
            out.append(": ")
            out.append(text: field.value)
            out.append("\r\n")
        }
        writeDate(date, into: &out)
        // A 204 has no Content-Length (RFC 9110 §8.6).
        if hasLength, response.status != 204 { writeLength(response.body.count, into: &out) }
        writeConnection(into: &out)
        unsafe writeRequestID(requestID, into: &out)
    }

    /// The offset of the body in a response of the gateway; the length of a response that has none.
    static func endOfHead(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        var index = 3
        while index < bytes.count {
            if unsafe bytes[index] == 0x0A, unsafe bytes[index &- 1] == 0x0D, unsafe bytes[index &- 2] == 0x0A {
                return index &+ 1
            }
            index &+= 1
        }
        return bytes.count
    }

    // MARK: The upstream's part

    /// Copies the status line and the fields that are forwarded, in contiguous runs.
    /// - Returns: whether they include a `Date` and a `Content-Length`.
    @inline(__always)
    private func copyHead(
        _ head: borrowing ResponseHead, _ bytes: UnsafeBufferPointer<UInt8>, _ framing: BodyFraming,
        into out: inout ByteBuffer
    ) -> (hasDate: Bool, hasLength: Bool) {
        let hasLength = head.forwardable.hasLength
        let isUsual =
            head.forwardable.count >= 0 && !head.framing.isNone && (!hasLength || framing == head.framing)
            && !(head.fields.has(.strictTransportSecurity) && isStrict)
        guard isUsual else {
            // Without a body (HEAD, 304), Content-Length describes another response's body: it is forwarded.
            let forwardsLength = head.framing.isNone && head.status >= 200 && head.status != 204
            unsafe writeStatusLine(head.status, bytes[head.reason], into: &out)
            return unsafe (copyFields(head.fields, bytes, forwardsLength: forwardsLength, into: &out), false)
        }
        if !head.forwardable.hasStatusLine { unsafe writeStatusLine(head.status, bytes[head.reason], into: &out) }
        for index in 0..<head.forwardable.count { unsafe out.append(bytes[head.forwardable[index]]) }
        return (head.fields.has(.date), hasLength)
    }

    private func writeStatusLine(_ status: Int, _ reason: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) {
        out.append("HTTP/1.1 ")
        out.append(decimal: status)
        out.append(" ")
        unsafe out.append(reason)
        out.append("\r\n")
    }

    /// Copies the fields one by one, where the parser's runs do not suffice.
    /// - Returns: whether they include a `Date`.
    @inline(never)
    @discardableResult
    private func copyFields(
        _ fields: borrowing FieldList, _ bytes: UnsafeBufferPointer<UInt8>, forwardsLength: Bool,
        into out: inout ByteBuffer
    ) -> Bool {
        var hasDate = false
        for index in 0..<fields.count {
            let field = fields[index]
            guard !field.isConnectionOption, !field.known.isDroppedFromResponses else { continue }
            switch field.known {
            case .contentLength where !forwardsLength: continue
            case .strictTransportSecurity where isStrict: continue
            case .date: hasDate = true
            default: break
            }
            unsafe out.append(bytes[field.line])
        }
        return hasDate
    }

    // MARK: The gateway's part

    @inline(__always)
    private func writeDate(_ date: borrowing ByteBuffer, into out: inout ByteBuffer) {
        out.append("Date: ")
        unsafe out.append(date.bytes)
        out.append("\r\n")
    }

    @inline(__always)
    private func writeLength(_ count: Int, into out: inout ByteBuffer) {
        out.append("Content-Length: ")
        out.append(decimal: count)
        out.append("\r\n")
    }

    /// Writes the `Connection` field where it differs from the version's default, and `Strict-Transport-Security` where
    /// the listener sends it.
    @inline(__always)
    private func writeConnection(into out: inout ByteBuffer) {
        if isStrict {
            out.append("Strict-Transport-Security: max-age=")
            out.append(decimal: Int(strictTransportSeconds))
            out.append("\r\n")
        }
        if isStream { return }
        if closes {
            out.append("Connection: close\r\n")
        } else if isHTTP10 {
            out.append("Connection: keep-alive\r\n")
        }
    }

    /// Writes the last field of a head, and the empty line after it.
    @inline(__always)
    private func writeRequestID(_ requestID: UnsafeBufferPointer<UInt8>, into out: inout ByteBuffer) {
        out.append("X-Request-Id: ")
        unsafe out.append(requestID)
        out.append("\r\n\r\n")
    }
}
