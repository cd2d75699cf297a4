internal import MartletCore
internal import MartletHTTP

extension HeadWriter {
    /// No method has so long a name; the HTTP/1 parser knows no longer ones either.
    private static let maximumMethodBytes = 32

    mutating func addRequestPseudo(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        let part: RequestPseudo.Part
        if unsafe name.spells(":path") {
            guard value.count <= maximumTargetBytes else { return fail(.refused(.uriTooLong)) }
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
        guard value.count <= headerBytes else { return fail(.refused(.headTooLarge)) }
        guard unsafe request.take(part, value) else { return fail(.malformed) }
    }

    /// Writes the request line, `Host`, and what makes an upgrade out of an extended CONNECT.
    mutating func writeRequestLine() {
        let method = unsafe request.value(.method)
        guard request.has(.method), unsafe FieldRules.isMethod(method) else { return fail(.malformed) }
        guard method.count <= HeadWriter.maximumMethodBytes else { return fail(.refused(.badRequestLine)) }
        if unsafe method.spells("CONNECT") {
            if request.has(.protocolName) { return writeTunnel() }
            return writeConnect()
        }
        guard !request.has(.protocolName) else { return fail(.malformed) }
        guard unsafe isTarget(request.value(.path), ofOptions: method.spells("OPTIONS")) else { return }
        unsafe text.append(method)
        writeTarget()
    }

    /// Plain CONNECT (RFC 9113 §8.5): an authority and nothing else.
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
        guard request.has(.authority), unsafe FieldRules.isMethod(name) else { return fail(.malformed) }
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

    /// Whether the path and the scheme can be those of a request; if not it has failed.
    ///
    /// Only origin form and `*`: a `:path` that names a scheme and a host would be read as another target by HTTP/1.
    private mutating func isTarget(_ path: UnsafeBufferPointer<UInt8>, ofOptions: Bool) -> Bool {
        guard request.has(.path), request.has(.scheme) else {
            fail(.malformed)
            return false
        }
        let scheme = unsafe request.value(.scheme)
        guard unsafe scheme.spells(ignoringCase: "http") || scheme.spells(ignoringCase: "https") else {
            fail(.refused(.badRequestLine))
            return false
        }
        guard unsafe FieldRules.isVisible(path),
            unsafe path.first == UInt8(ascii: "/") || (ofOptions && path.spells("*"))
        else {
            fail(.refused(.badRequestLine))
            return false
        }
        for index in 0..<path.count where unsafe path[index] == UInt8(ascii: "#") {
            fail(.refused(.pathAmbiguous))
            return false
        }
        return true
    }

    private mutating func writeTarget() {
        guard unsafe isRoom(for: request.value(.path).count &+ 64) else { return fail(.refused(.headTooLarge)) }
        text.append(" ")
        unsafe text.append(request.value(.path))
        text.append(" HTTP/1.1\r\n")
        writeHost()
    }

    private mutating func writeHost() {
        guard request.has(.authority) else { return }
        let authority = unsafe request.value(.authority)
        guard unsafe FieldRules.isVisible(authority) else { return fail(.refused(.badHost)) }
        unsafe writeHost(authority)
    }

    private mutating func writeHost(_ value: UnsafeBufferPointer<UInt8>) {
        hasHost = true
        guard countField(value.count &+ 8) else { return }
        text.append("Host: ")
        unsafe text.append(value)
        text.append("\r\n")
    }

    /// RFC 9113 §8.3.1: `host` must say what `:authority` says; it stands for it where that is missing.
    mutating func addHost(_ value: UnsafeBufferPointer<UInt8>) {
        if request.has(.authority) {
            guard unsafe value.isSame(ignoringCase: request.value(.authority)) else {
                return fail(.refused(.hostMismatch))
            }
            return
        }
        guard !hasHost else { return fail(.malformed) }
        guard unsafe FieldRules.isVisible(value) else { return fail(.refused(.badHost)) }
        unsafe writeHost(value)
    }
}
