internal import MartletCore
internal import MartletHTTP

extension HeadWriter {
    /// The limit of the HTTP/1 parser.
    private static let maximumMethodBytes = 32

    mutating func addRequestPseudo(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        let part: RequestPseudoHeaders.Part
        if unsafe name.spells(":path") {
            guard value.count <= maximumTargetBytes else { return fail(.rejected(.uriTooLong)) }
            part = .path
        } else if unsafe name.spells(":method") {
            part = .method
        } else if unsafe name.spells(":scheme") {
            part = .scheme
        } else if unsafe name.spells(":authority") {
            part = .authority
        } else if unsafe name.spells(":protocol") {
            part = .protocolName
        } else {
            return fail(.malformed)
        }
        guard value.count <= headerBytes else { return fail(.rejected(.headTooLarge)) }
        guard unsafe request.store(part, value) else { return fail(.malformed) }
    }

    /// Writes the request line, `Host`, and for an extended CONNECT the fields of an upgrade.
    mutating func writeRequestLine() {
        let method = unsafe request.value(.method)
        guard request.has(.method), unsafe FieldRules.isToken(method) else { return fail(.malformed) }
        guard method.count <= HeadWriter.maximumMethodBytes else { return fail(.rejected(.badRequestLine)) }
        if unsafe method.spells("CONNECT") {
            if request.has(.protocolName) { return writeTunnel() }
            return writeConnect()
        }
        guard !request.has(.protocolName) else { return fail(.malformed) }
        guard unsafe isTarget(request.value(.path), ofOptions: method.spells("OPTIONS")) else { return }
        unsafe text.append(method)
        writeTarget()
    }

    /// Plain CONNECT (RFC 9113 §8.5): only an authority.
    private mutating func writeConnect() {
        let authority = unsafe request.value(.authority)
        guard request.has(.authority), !request.has(.path), !request.has(.scheme),
            unsafe FieldRules.isVisible(authority)
        else { return fail(.malformed) }
        text.append("CONNECT ")
        unsafe text.append(authority)
        text.append(" HTTP/1.1\r\n")
        writeHost()
    }

    /// Extended CONNECT (RFC 8441 §4): an HTTP/1.1 upgrade.
    private mutating func writeTunnel() {
        let name = unsafe request.value(.protocolName)
        guard request.has(.authority), unsafe FieldRules.isToken(name) else { return fail(.malformed) }
        guard unsafe isTarget(request.value(.path), ofOptions: false) else { return }
        request.isTunnel = true
        unsafe request.isWebSocket = name.spells(ignoringCase: "websocket")
        text.append("GET")
        writeTarget()
        write("Connection: Upgrade\r\n")
        guard countField(name.count &+ 11) else { return }
        text.append("Upgrade: ")
        unsafe text.append(name)
        text.append("\r\n")
        guard request.isWebSocket, countField(45) else { return }
        text.append("Sec-WebSocket-Key: ")
        var generator = SystemRandomNumberGenerator()
        var key: [UInt8] = []
        for _ in 0..<16 { key.append(UInt8.random(in: 0...255, using: &generator)) }
        text.append(text: Base64.encode(key, padding: .required))
        text.append("\r\n")
    }

    /// Checks the path and the scheme; `false` after a failure.
    ///
    /// Only origin form and `*`: HTTP/1 would parse a `:path` with a scheme and a host as a different target.
    private mutating func isTarget(_ path: UnsafeBufferPointer<UInt8>, ofOptions: Bool) -> Bool {
        guard request.has(.path), request.has(.scheme) else {
            fail(.malformed)
            return false
        }
        let scheme = unsafe request.value(.scheme)
        guard unsafe scheme.spells(ignoringCase: "http") || scheme.spells(ignoringCase: "https") else {
            fail(.rejected(.badRequestLine))
            return false
        }
        guard unsafe FieldRules.isVisible(path),
            unsafe path.first == UInt8(ascii: "/") || (ofOptions && path.spells("*"))
        else {
            fail(.rejected(.badRequestLine))
            return false
        }
        for index in 0..<path.count where unsafe path[index] == UInt8(ascii: "#") {
            fail(.rejected(.pathAmbiguous))
            return false
        }
        return true
    }

    private mutating func writeTarget() {
        guard unsafe hasSpace(for: request.value(.path).count &+ 64) else { return fail(.rejected(.headTooLarge)) }
        text.append(" ")
        unsafe text.append(request.value(.path))
        text.append(" HTTP/1.1\r\n")
        writeHost()
    }

    private mutating func writeHost() {
        guard request.has(.authority) else { return }
        let authority = unsafe request.value(.authority)
        guard unsafe FieldRules.isVisible(authority) else { return fail(.rejected(.badHost)) }
        unsafe writeHost(authority)
    }

    private mutating func writeHost(_ value: UnsafeBufferPointer<UInt8>) {
        hasHost = true
        guard countField(value.count &+ 8) else { return }
        text.append("Host: ")
        unsafe text.append(value)
        text.append("\r\n")
    }

    /// RFC 9113 §8.3.1: `host` must equal `:authority`, and replaces it when it is missing.
    mutating func addHost(_ value: UnsafeBufferPointer<UInt8>) {
        if request.has(.authority) {
            guard unsafe value.isSame(ignoringCase: request.value(.authority)) else {
                return fail(.rejected(.hostMismatch))
            }
            return
        }
        guard !hasHost else { return fail(.malformed) }
        guard unsafe FieldRules.isVisible(value) else { return fail(.rejected(.badHost)) }
        unsafe writeHost(value)
    }
}
