package import MartletCore
package import MartletHTTP

/// The result of checking a header block.
package enum HeaderBlockResult: Equatable, Sendable {
    case valid
    /// RFC 9113 §8.1.1: the stream is reset.
    case malformed
    /// Rejected without a text; the client gets a response.
    case rejected(HeadError)
}

/// Writes validated header blocks as HTTP/1 text, one after the other into one buffer.
///
/// Every name, value and part of the first line is checked before it is appended, regardless of nghttp2's own checks,
/// so that the text cannot be parsed as a different message.
package struct HeadWriter: ~Copyable {
    /// The kind of a header block.
    package enum Kind: Sendable { case request, response, trailers }

    let headerBytes: Int
    let headerFields: Int
    let maximumTargetBytes: Int
    /// The finished texts that were not consumed, and the current one.
    package internal(set) var text = ByteBuffer()
    /// A block is incomplete.
    var isOpen = false
    /// The start of the current text.
    private(set) var start = 0
    private(set) var kind = Kind.request
    private(set) var result = HeaderBlockResult.valid
    /// Bytes of names and values of the block, written or not.
    private(set) var decoded = 0
    private var fields = 0
    /// The message ends with its head.
    private(set) var ends = false
    var isPastPseudo = false
    var hasLength = false
    var hasHost = false
    /// The block has a gRPC content type, even if it was rejected.
    private(set) var isGRPC = false
    var request = RequestPseudoHeaders()
    /// The cookie crumbs so far, joined (RFC 9113 §8.2.3).
    private var cookie = ByteBuffer()
    var status = 0
    /// The response is to a HEAD or CONNECT request: it has no body.
    var hasNoBody = false

    package init(headerBytes: Int, headerFields: Int, maximumTargetBytes: Int) {
        self.headerBytes = headerBytes
        self.headerFields = headerFields
        self.maximumTargetBytes = maximumTargetBytes
    }

    /// Begins the next text.
    package mutating func begin(_ kind: Kind, ends: Bool, hasNoBody: Bool = false) {
        start = text.count
        self.kind = kind
        self.ends = ends
        self.hasNoBody = hasNoBody
        result = .valid
        decoded = 0
        fields = 0
        isPastPseudo = kind == .trailers
        hasLength = false
        hasHost = false
        isGRPC = false
        request.clear()
        cookie.removeAll()
        status = 0
    }

    /// Adds a field or pseudo-header field.
    package mutating func add(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        decoded &+= name.count &+ value.count
        if unsafe kind == .request && name.spells("content-type") { isGRPC = unsafe GRPCContentType.matches(value) }
        if result != .valid { return }
        if unsafe name.first == UInt8(ascii: ":") {
            guard !isPastPseudo else { return fail(.malformed) }
            switch kind {
            case .request: unsafe addRequestPseudo(name, value)
            case .response: unsafe addResponsePseudo(name, value)
            case .trailers: fail(.malformed)
            }
            return
        }
        if !isPastPseudo { finishPseudo() }
        if result != .valid { return }
        guard unsafe FieldRules.isName(name), unsafe FieldRules.isValue(value),
            unsafe !FieldRules.isConnectionSpecific(name)
        else { return fail(.malformed) }
        unsafe addField(name, value)
    }

    /// Ends the text; when `valid`, it is the range from `start` to the end of `text`, otherwise it is discarded.
    package mutating func finish() -> HeaderBlockResult {
        if result == .valid, !isPastPseudo { finishPseudo() }
        if result == .valid, kind == .request, !hasHost { fail(.rejected(.hostMissing)) }
        if result == .valid, !cookie.isEmpty {
            // The crumbs were counted when they came.
            text.append("cookie: ")
            unsafe text.append(cookie.bytes)
            text.append("\r\n")
        }
        if result == .valid, kind != .trailers {
            if needsFraming { write("Transfer-Encoding: chunked\r\n") }
            text.append("\r\n")
        }
        if result == .valid, text.count &- start > headerBytes { fail(.rejected(failure(.headTooLarge))) }
        if result != .valid { discard() }
        return result
    }

    /// Discards the current text.
    mutating func discard() { text.truncate(to: start) }

    /// Removes the first `count` bytes of the buffer.
    mutating func drop(_ count: Int) {
        text.consume(count)
        start = max(start &- count, 0)
    }

    mutating func fail(_ result: HeaderBlockResult) {
        self.result = result
        discard()
    }

    /// The failure, as the upstream's where the block is a response.
    func failure(_ failure: HeadError) -> HeadError { kind == .response ? failure.upstream : failure }

    /// A body of unknown length follows: the text gets a transfer coding.
    private var needsFraming: Bool {
        if ends || hasLength || hasNoBody || request.isTunnel { return false }
        return kind == .request || !(status < 200 || status == 204 || status == 304)
    }

    private mutating func finishPseudo() {
        isPastPseudo = true
        switch kind {
        case .request: writeRequestLine()
        case .response: writeStatusLine()
        case .trailers: break
        }
    }

    private mutating func addField(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        switch name.count {
        case 2 where unsafe name.spells("te"):
            guard unsafe value.spells(ignoringCase: "trailers") else { return fail(.malformed) }
        case 4 where unsafe kind == .request && name.spells("host"): return unsafe addHost(value)
        case 6 where unsafe kind == .request && name.spells("cookie"): return unsafe addCookie(value)
        case 14 where unsafe kind != .trailers && name.spells("content-length"): return unsafe addLength(value)
        case 17 where unsafe isOwnKey(name, "sec-websocket-key"): return
        case 20 where unsafe isOwnKey(name, "sec-websocket-accept"): return
        default: break
        }
        guard countField(name.count &+ value.count &+ 4) else { return }
        unsafe text.append(name)
        text.append(": ")
        unsafe text.append(value)
        text.append("\r\n")
    }

    /// A field of a WebSocket handshake that the gateway replaces (RFC 8441 §5).
    private func isOwnKey(_ name: UnsafeBufferPointer<UInt8>, _ text: StaticString) -> Bool {
        guard request.isWebSocket else { return false }
        return unsafe name.spells(text)
    }

    private mutating func addCookie(_ value: UnsafeBufferPointer<UInt8>) {
        if cookie.isEmpty {
            guard countField(value.count &+ 10) else { return }
        } else {
            guard countBytes(value.count &+ 2) else { return }
            cookie.append("; ")
        }
        unsafe cookie.append(value)
    }

    /// RFC 9110 §8.6; nghttp2 checks the body's length.
    private mutating func addLength(_ value: UnsafeBufferPointer<UInt8>) {
        guard !hasLength, !value.isEmpty else { return fail(.malformed) }
        for index in 0..<value.count where unsafe value[index] &- 0x30 > 9 { return fail(.malformed) }
        hasLength = true
        guard !request.isTunnel else { return fail(.rejected(.badContentLength)) }
        guard countField(value.count &+ 18) else { return }
        text.append("Content-Length: ")
        unsafe text.append(value)
        text.append("\r\n")
    }

    /// Appends a line.
    mutating func write(_ line: StaticString) {
        guard countField(line.utf8CodeUnitCount) else { return }
        text.append(line)
    }

    /// Counts a field of this many bytes; `false` and a rejection when a limit is exceeded.
    mutating func countField(_ bytes: Int) -> Bool {
        fields &+= 1
        guard fields <= headerFields else {
            fail(.rejected(failure(.tooManyFields)))
            return false
        }
        return countBytes(bytes)
    }

    func hasSpace(for bytes: Int) -> Bool {
        text.count &- start &+ cookie.count &+ bytes <= headerBytes
    }

    private mutating func countBytes(_ bytes: Int) -> Bool {
        if hasSpace(for: bytes) { return true }
        fail(.rejected(failure(.headTooLarge)))
        return false
    }
}
