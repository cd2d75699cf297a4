internal import MartletCore
internal import MartletHTTP

extension HeadWriter {
    /// The limit of the HTTP/1 parser.
    private static let maximumMethodBytes = 32

    /// Adds a pseudo-header field whose value was checked.
    mutating func add(
        _ part: RequestPseudoHeaders.Part, _ value: UnsafeBufferPointer<UInt8>, _ traits: RequestPseudoHeaders.Traits
    ) {
        guard kind == .request, !seen.isPastPseudo, request.accept(part, traits) else { return fail(.malformed) }
        if result != .valid { return }
        if part == .path, value.count > limits.targetBytes { return fail(.rejected(.uriTooLong)) }
        guard value.count <= limits.bytes else { return fail(.rejected(.headTooLarge)) }
        unsafe request.store(part, value)
    }

    /// Writes the request line, `Host`, and for an extended CONNECT the fields of an upgrade.
    mutating func writeRequestLine() {
        let method = unsafe request.value(.method)
        guard request.has(.method) else { return fail(.malformed) }
        guard method.count <= HeadWriter.maximumMethodBytes else { return fail(.rejected(.badRequestLine)) }
        if request.has(.connect) {
            if request.has(.protocolName) { return writeTunnel() }
            return writeConnect()
        }
        guard !request.has(.protocolName) else { return fail(.malformed) }
        guard isTarget(ofOptions: request.has(.options)) else { return }
        unsafe text.append(method)
        writeTarget()
    }

    /// Plain CONNECT (RFC 9113 §8.5): only an authority.
    private mutating func writeConnect() {
        let authority = unsafe request.value(.authority)
        guard request.has(.authority), !request.has(.path), !request.has(.scheme) else { return fail(.malformed) }
        text.append("CONNECT ")
        unsafe text.append(authority)
        text.append(" HTTP/1.1\r\n")
        writeHost()
    }

    /// Extended CONNECT (RFC 8441 §4): an HTTP/1.1 upgrade.
    private mutating func writeTunnel() {
        let name = unsafe request.value(.protocolName)
        guard request.has(.authority), unsafe FieldRules.isToken(name) else { return fail(.malformed) }
        guard isTarget(ofOptions: false) else { return }
        request.isTunnel = true
        unsafe request.isWebSocket = name.spells(ignoringCase: "websocket")
        text.append("GET")
        writeTarget()
        write("Connection", "Upgrade")
        guard countField(name.count &+ 11) else { return }
        unsafe append("Upgrade", name)
        guard request.isWebSocket, countField(45) else { return }
        var generator = SystemRandomNumberGenerator()
        var key: [UInt8] = []
        for _ in 0..<16 { key.append(UInt8.random(in: 0...255, using: &generator)) }
        var text = Base64.encode(key, padding: .required)
        text.withUTF8 { unsafe append("Sec-WebSocket-Key", $0) }
    }

    /// Checks the path and the scheme; `false` after a failure.
    ///
    /// Only origin form and `*`: HTTP/1 would parse a `:path` with a scheme and a host as a different target.
    private mutating func isTarget(ofOptions: Bool) -> Bool {
        guard request.has(.path), request.has(.scheme) else {
            fail(.malformed)
            return false
        }
        guard request.has(.http),
            request.has(.regular) || (ofOptions && request.has(.asterisk))
        else {
            fail(.rejected(.badRequestLine))
            return false
        }
        guard !request.has(.fragment) else {
            fail(.rejected(.pathAmbiguous))
            return false
        }
        return true
    }

    private mutating func writeTarget() {
        let path = unsafe request.value(.path)
        let isASCII = !request.has(.obsText)
        guard hasSpace(for: (isASCII ? path.count : path.count &* 3) &+ 64) else {
            return fail(.rejected(.headTooLarge))
        }
        text.append(" ")
        if isASCII {
            unsafe text.append(path)
        } else if unsafe !TargetEncoding.append(path.span, to: &text) {
            return fail(.rejected(.badRequestLine))
        }
        text.append(" HTTP/1.1\r\n")
        writeHost()
    }

    private mutating func writeHost() {
        guard request.has(.authority) else { return }
        unsafe writeHost(request.value(.authority))
    }

    private mutating func writeHost(_ value: UnsafeBufferPointer<UInt8>) {
        seen.hasHost = true
        guard countField(value.count &+ 8) else { return }
        unsafe append("Host", value)
    }

    /// RFC 9113 §8.3.1: `host` must equal `:authority`, and replaces it when it is missing.
    mutating func addHost(_ value: UnsafeBufferPointer<UInt8>) {
        if request.has(.authority) {
            let isSecure = unsafe request.value(.scheme).spells(ignoringCase: "https")
            let authority = unsafe HeadWriter.withoutDefaultPort(request.value(.authority), isSecure: isSecure)
            guard unsafe HeadWriter.withoutDefaultPort(value, isSecure: isSecure).isSame(ignoringCase: authority) else {
                return fail(.rejected(.hostMismatch))
            }
            return
        }
        guard !seen.hasHost else { return fail(.malformed) }
        unsafe writeHost(value)
    }

    /// A host without a port that is empty or the scheme's default.
    private static func withoutDefaultPort(
        _ host: UnsafeBufferPointer<UInt8>, isSecure: Bool
    ) -> UnsafeBufferPointer<UInt8> {
        for port in [isSecure ? ":443" : ":80", ":"] as [StaticString] {
            let start = host.count &- port.utf8CodeUnitCount
            if start > 0, unsafe host.part(start, host.count).spells(port) { return unsafe host.part(0, start) }
        }
        return unsafe host
    }
}
