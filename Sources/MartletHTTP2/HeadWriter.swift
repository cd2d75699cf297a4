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

/// What a request says of its body, and how much of it was received.
package struct RequestBody: Sendable {
    /// `content-length`, or −1.
    var length = -1
    var received = 0
    /// A `host` field was received; a second one, in the trailers too, is malformed.
    var hasHost = false

    package init() {}

    /// Whether the body has the length that was announced.
    var isComplete: Bool { length < 0 || received == length }
    /// Whether more was received than was announced.
    var isTooLong: Bool { length >= 0 && received > length }
}

/// Limits of a header block: the bytes of its text, its fields, and the bytes of a request's target.
struct HeadLimits: Sendable {
    let bytes: Int
    let fields: Int
    let targetBytes: Int
}

/// What the fields of a header block have shown so far.
struct SeenFields: Sendable {
    var isPastPseudo = false
    var hasLength = false
    var hasHost = false
    /// The content type of a block, even if it was rejected.
    var grpc = GRPCKind.none
}

/// The cookie crumbs of a request so far, joined (RFC 9113 §8.2.3).
private struct CookieCrumbs: ~Copyable {
    var text = ByteBuffer()
    var hasObsText = false

    mutating func removeAll() {
        text.removeAll()
        hasObsText = false
    }
}

/// Writes validated header blocks as HTTP/1 text, one after the other into one buffer.
///
/// Every name, value and part of the first line is checked before it is appended, regardless of nghttp2's own checks,
/// so that the text cannot be parsed as a different message.
package struct HeadWriter: ~Copyable {
    /// The kind of a header block.
    package enum Kind: Sendable { case request, response, trailers }

    let limits: HeadLimits
    /// The finished texts that were not consumed, and the current one.
    package internal(set) var text = ByteBuffer()
    /// The offsets of the field lines of these texts, each from the beginning of its text.
    package private(set) var offsets = FieldOffsetsList()
    /// The first of the current text.
    private(set) var offsetsStart = 0
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
    var seen = SeenFields()
    var request = RequestPseudoHeaders()
    /// The block is a request or its trailers.
    private var isOfRequest = false
    private(set) var body = RequestBody()
    private var cookie = CookieCrumbs()
    var status = 0
    /// The response is to a HEAD or CONNECT request: it has no body.
    var hasNoBody = false

    package init(headerBytes: Int, headerFields: Int, maximumTargetBytes: Int) {
        limits = HeadLimits(bytes: headerBytes, fields: headerFields, targetBytes: maximumTargetBytes)
    }

    /// Begins the next text.
    ///
    /// - Parameters:
    ///   - ends: whether the block ends its message.
    ///   - hasNoBody: whether a response is to HEAD or CONNECT.
    ///   - body: of trailers of a request, what the request has said of its body.
    package mutating func begin(_ kind: Kind, ends: Bool, hasNoBody: Bool = false, body: RequestBody? = nil) {
        start = text.count
        offsetsStart = offsets.count
        self.kind = kind
        self.ends = ends
        self.hasNoBody = hasNoBody
        isOfRequest = kind == .request || body != nil
        self.body = body ?? RequestBody()
        result = .valid
        decoded = 0
        fields = 0
        seen = SeenFields(isPastPseudo: kind == .trailers)
        request.clear()
        cookie.removeAll()
        status = 0
    }

    /// Adds a field or pseudo-header field.
    package mutating func add(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        if let checked = unsafe check(name, value) { return unsafe add(name, value, checked) }
        decoded &+= name.count &+ value.count
        if isMalformed { return }
        guard kind == .response, !seen.isPastPseudo, unsafe name.first == UInt8(ascii: ":") else {
            return fail(.malformed)
        }
        unsafe addResponsePseudo(name, value)
    }

    /// Checks the characters of a field; nil if they are invalid, and for the pseudo-header field of a response.
    func check(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) -> CheckedField? {
        var checked = CheckedField()
        if unsafe name.first == UInt8(ascii: ":") {
            guard let part = unsafe RequestPseudoHeaders.named(name),
                let traits = unsafe RequestPseudoHeaders.check(part, value)
            else { return nil }
            checked.part = part
            checked.traits = traits
            return checked
        }
        guard unsafe FieldRules.isName(name), unsafe FieldRules.isValue(value, &checked.hasObsText) else { return nil }
        checked.special = unsafe SpecialName(name)
        return checked
    }

    /// Adds a field whose characters are valid.
    mutating func add(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, _ checked: CheckedField
    ) {
        decoded &+= name.count &+ value.count
        if isMalformed { return }
        if let part = checked.part { return unsafe add(part, value, checked.traits) }
        if checked.special == .contentType, kind == .request { seen.grpc = unsafe GRPCKind(contentType: value) }
        // A block that is rejected already is still checked: whether it is malformed decides between a reset and a
        // response.
        guard unsafe isWellFormed(checked.special, value) else { return fail(.malformed) }
        if !seen.isPastPseudo { finishPseudo() }
        if result != .valid { return }
        unsafe addField(checked.special, name, value, checked.hasObsText)
    }

    /// Exchanges the memory of the texts, all of which were removed, for that of a pool.
    mutating func swapMemory(_ text: inout ByteBuffer, _ offsets: inout FieldOffsetsList) {
        swap(&self.text, &text)
        swap(&self.offsets, &offsets)
    }

    /// Ends the text; when `valid`, it is the range from `start` to the end of `text`, otherwise it is discarded.
    package mutating func finish() -> HeaderBlockResult {
        if !isMalformed, isOfRequest, !isComplete() { fail(.malformed) }
        if result == .valid, !seen.isPastPseudo { finishPseudo() }
        if result == .valid, kind == .request, !seen.hasHost { fail(.rejected(.hostMissing)) }
        if result == .valid, !cookie.text.isEmpty {
            // The crumbs were counted when they came.
            unsafe append("cookie", cookie.text.bytes, cookie.hasObsText)
        }
        if result == .valid, kind != .trailers {
            if needsFraming { write("Transfer-Encoding", "chunked") }
            text.append("\r\n")
        }
        if result == .valid, text.count &- start > limits.bytes { fail(.rejected(failure(.headTooLarge))) }
        if result != .valid { discard() }
        return result
    }

    /// The bytes of the current text.
    var currentCount: Int { text.count &- start }

    /// Whether the block was found to be malformed.
    var isMalformed: Bool { result == .malformed }

    /// Checks a regular field beyond its characters; these are the checks that nghttp2 makes of requests where it checks
    /// messages itself.
    private mutating func isWellFormed(_ special: SpecialName, _ value: UnsafeBufferPointer<UInt8>) -> Bool {
        switch special {
        case .connectionSpecific: return false
        case .te: return unsafe value.spells(ignoringCase: "trailers")
        case .host where isOfRequest:
            guard !body.hasHost, !value.isEmpty else { return false }
            body.hasHost = true
            return unsafe FieldRules.isAuthority(value)
        case .contentLength where isOfRequest:
            guard body.length < 0, let length = unsafe HeadWriter.length(value) else { return false }
            body.length = length
            return true
        default: return true
        }
    }

    /// Whether a block of a request is complete, and its length agrees with the body.
    private mutating func isComplete() -> Bool {
        if kind == .request {
            guard request.isComplete(hasHost: body.hasHost) else { return false }
            if request.isPlainConnect { body.length = -1 }
        } else if !ends {
            return false
        }
        return !ends || body.isComplete
    }

    /// A number of decimal digits that fits.
    private static func length(_ value: UnsafeBufferPointer<UInt8>) -> Int? {
        guard !value.isEmpty else { return nil }
        var length = 0
        for index in 0..<value.count {
            let digit = unsafe value[index] &- 0x30
            guard digit < 10 else { return nil }
            let (product, overflows) = length.multipliedReportingOverflow(by: 10)
            let (sum, carries) = product.addingReportingOverflow(Int(digit))
            guard !overflows, !carries else { return nil }
            length = sum
        }
        return length
    }

    /// Discards the current text.
    mutating func discard() {
        text.truncate(to: start)
        offsets.truncate(to: offsetsStart)
    }

    /// Removes all finished texts.
    ///
    /// - Returns: how many bytes they had.
    mutating func dropFinished() -> Int {
        let count = isOpen ? start : text.count
        text.consume(count)
        offsets.drop(isOpen ? offsetsStart : offsets.count)
        start = 0
        offsetsStart = 0
        return count
    }

    mutating func fail(_ result: HeaderBlockResult) {
        self.result = result
        discard()
    }

    /// The failure, as the upstream's where the block is a response.
    func failure(_ failure: HeadError) -> HeadError { kind == .response ? failure.upstream : failure }

    /// A body of unknown length follows: the text gets a transfer coding.
    private var needsFraming: Bool {
        if ends || seen.hasLength || hasNoBody || request.isTunnel { return false }
        return kind == .request || !(status < 200 || status == 204 || status == 304)
    }

    private mutating func finishPseudo() {
        seen.isPastPseudo = true
        if result != .valid { return }
        switch kind {
        case .request: writeRequestLine()
        case .response: writeStatusLine()
        case .trailers: break
        }
    }

    private mutating func addField(
        _ special: SpecialName, _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>,
        _ hasObsText: Bool
    ) {
        switch special {
        case .host where kind == .request: return unsafe addHost(value)
        case .cookie where kind == .request: return unsafe addCookie(value, hasObsText)
        case .contentLength where kind != .trailers: return unsafe addLength(value)
        // Fields of a WebSocket handshake that the gateway replaces (RFC 8441 §5).
        case .webSocketKey where request.isWebSocket, .webSocketAccept where request.isWebSocket: return
        default: break
        }
        guard countField(name.count &+ value.count &+ 4) else { return }
        unsafe append(name, value, hasObsText)
    }

    /// Appends a line and notes its offsets.
    @inline(__always)
    private mutating func append(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, _ hasObsText: Bool
    ) {
        offsets.append(
            FieldOffsets(
                start: text.count &- start, nameCount: name.count, valueCount: value.count, hasObsText: hasObsText))
        unsafe text.append(name)
        text.append(": ")
        unsafe text.append(value)
        text.append("\r\n")
    }

    /// The same for a name of ours.
    mutating func append(_ name: StaticString, _ value: UnsafeBufferPointer<UInt8>, _ hasObsText: Bool = false) {
        unsafe append(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount), value, hasObsText)
    }

    private mutating func addCookie(_ value: UnsafeBufferPointer<UInt8>, _ hasObsText: Bool) {
        if hasObsText { cookie.hasObsText = true }
        if cookie.text.isEmpty {
            guard countField(value.count &+ 10) else { return }
        } else {
            guard countBytes(value.count &+ 2) else { return }
            cookie.text.append("; ")
        }
        unsafe cookie.text.append(value)
    }

    /// RFC 9110 §8.6; nghttp2 checks the body's length.
    private mutating func addLength(_ value: UnsafeBufferPointer<UInt8>) {
        guard !seen.hasLength, !value.isEmpty else { return fail(.malformed) }
        for index in 0..<value.count where unsafe value[index] &- 0x30 > 9 { return fail(.malformed) }
        seen.hasLength = true
        guard !request.isTunnel else { return fail(.rejected(.badContentLength)) }
        guard countField(value.count &+ 18) else { return }
        unsafe append("Content-Length", value)
    }

    /// Appends a field of ours.
    mutating func write(_ name: StaticString, _ value: StaticString) {
        guard countField(name.utf8CodeUnitCount &+ value.utf8CodeUnitCount &+ 4) else { return }
        unsafe append(name, UnsafeBufferPointer(start: value.utf8Start, count: value.utf8CodeUnitCount))
    }

    /// Counts a field of this many bytes; `false` and a rejection when a limit is exceeded.
    @inline(__always)
    mutating func countField(_ bytes: Int) -> Bool {
        fields &+= 1
        guard fields <= limits.fields else {
            fail(.rejected(failure(.tooManyFields)))
            return false
        }
        return countBytes(bytes)
    }

    func hasSpace(for bytes: Int) -> Bool {
        text.count &- start &+ cookie.text.count &+ bytes <= limits.bytes
    }

    private mutating func countBytes(_ bytes: Int) -> Bool {
        if hasSpace(for: bytes) { return true }
        fail(.rejected(failure(.headTooLarge)))
        return false
    }
}
