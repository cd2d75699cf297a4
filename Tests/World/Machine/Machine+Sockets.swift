import CLinux

extension Machine {
    func socketCall(_ number: Int, _ a: UnsafePointer<Int>) -> Int? {
        switch number {
        case Linux.socket: return openSocket(a)
        case Linux.socketpair, Linux.pipe2: return openPair(number, a)
        case Linux.bind: return bind(a)
        case Linux.listen: return listen(a)
        case Linux.accept4: return accept(a)
        case Linux.connect: return connect(a)
        case Linux.shutdown:
            guard let stream = descriptors[a[0]] as? Stream else { return -Int(ENOTSOCK) }
            guard stream.isConnected else { return -Int(ENOTCONN) }
            if a[1] != 0 { stream.finish() }
            return 0
        case Linux.setsockopt: return setOption(a)
        case Linux.getsockopt: return getOption(a)
        case Linux.getsockname, Linux.getpeername: return name(number, a)
        default: return nil
        }
    }

    private func openSocket(_ a: UnsafePointer<Int>) -> Int {
        guard a[0] == Int(AF_INET) || a[0] == Int(AF_UNIX) else { return -Int(EAFNOSUPPORT) }
        if let error = fault(.socket) { return error }
        let address = Address(host: process.host, port: 0)
        let stream = Stream(self, Link(client: address, server: address), isServer: false)
        stream.family = Int32(a[0])
        stream.isDatagram = a[1] & 0xf == Int(SOCK_DGRAM.rawValue)
        stream.isNonBlocking = a[1] & Int(O_NONBLOCK) != 0
        return descriptors.add(stream, for: process)
    }

    private func openPair(_ number: Int, _ a: UnsafePointer<Int>) -> Int {
        guard let ends = UnsafeMutablePointer<Int32>(bitPattern: number == Linux.pipe2 ? a[0] : a[3]) else {
            return -Int(EFAULT)
        }
        let flags = a[1]
        let files: (File, File) = number == Linux.pipe2 ? PipeEnd.make(self) : network.pair()
        for file in [files.0, files.1] { file.isNonBlocking = flags & Int(O_NONBLOCK) != 0 }
        let first = descriptors.add(files.0, for: process)
        guard first >= 0 else { return first }
        let second = descriptors.add(files.1, for: process)
        guard second >= 0 else {
            _ = descriptors.close(first)
            return second
        }
        (ends[0], ends[1]) = (Int32(first), Int32(second))
        return 0
    }

    private func address(_ pointer: Int, _ length: Int) -> Address? {
        Address(UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: pointer), count: length))
    }

    private func bind(_ a: UnsafePointer<Int>) -> Int {
        guard let stream = descriptors[a[0]] as? Stream, var address = address(a[1], a[2]) else { return -Int(EINVAL) }
        if address.path.isEmpty, address.port == 0 { address.port = network.nextPort() }
        stream.bound = address
        return 0
    }

    private func listen(_ a: UnsafePointer<Int>) -> Int {
        guard let stream = descriptors[a[0]] as? Stream, let address = stream.bound else { return -Int(EINVAL) }
        let listener = Listener(self, address)
        listener.limit = max(a[1], 1)
        listener.isNonBlocking = stream.isNonBlocking
        descriptors.replace(a[0], by: listener)
        network.listeners[address, default: []].append(listener)
        return 0
    }

    private func accept(_ a: UnsafePointer<Int>) -> Int {
        guard let listener = descriptors[a[0]] as? Listener else { return -Int(EINVAL) }
        if !listener.queue.isEmpty, let error = fault(.accept) { return error }
        return listener.blocking(isNonBlocking: listener.isNonBlocking) {
            guard let stream = listener.queue.first else { return -Int(EAGAIN) }
            stream.isNonBlocking = a[3] & Int(O_NONBLOCK) != 0
            let number = descriptors.add(stream, for: process)
            guard number >= 0 else { return number }
            _ = listener.accept()
            let length = UnsafeMutablePointer<UInt32>(bitPattern: a[2])
            stream.remote.write(UnsafeMutableRawPointer(bitPattern: a[1]), length)
            return number
        }
    }

    private func connect(_ a: UnsafePointer<Int>) -> Int {
        guard let stream = descriptors[a[0]] as? Stream else { return -Int(ENOTSOCK) }
        guard let address = address(a[1], a[2]) else { return -Int(EAFNOSUPPORT) }
        guard !stream.isDatagram else { return -Int(ENETUNREACH) }
        switch stream.state {
        case .connecting: return -Int(EALREADY)
        case .connected: return -Int(EISCONN)
        case .refused: return -Int(ECONNREFUSED)
        case .new: break
        }
        let client = stream.bound ?? Address(host: process.host, port: network.nextPort())
        stream.link = Link(client: client, server: address)
        network.start(stream)
        if stream.isNonBlocking { return -Int(EINPROGRESS) }
        return stream.blocking(isNonBlocking: false) {
            switch stream.state {
            case .connected: 0
            case .refused: -Int(ECONNREFUSED)
            default: -Int(EAGAIN)
            }
        }
    }

    private func setOption(_ a: UnsafePointer<Int>) -> Int {
        guard let file = descriptors[a[0]] else { return -Int(EBADF) }
        if a[1] == Int(SOL_SOCKET), a[2] == Int(SO_LINGER),
            let setting = UnsafePointer<linger>(bitPattern: a[3])?.pointee
        {
            (file as? Stream)?.lingersNot = setting.l_onoff != 0 && setting.l_linger == 0
        }
        return 0
    }

    private func getOption(_ a: UnsafePointer<Int>) -> Int {
        guard let file = descriptors[a[0]] else { return -Int(EBADF) }
        guard let value = UnsafeMutablePointer<Int32>(bitPattern: a[3]) else { return -Int(EFAULT) }
        guard a[1] == Int(SOL_SOCKET) else {
            // Congestion control has a name; everything else is off.
            if a[1] == Int(IPPROTO_TCP), a[2] == Int(TCP_CONGESTION) {
                UnsafeMutableRawPointer(value).copyMemory(from: Array("cubic\0".utf8), byteCount: 6)
                return 0
            }
            return -Int(ENOPROTOOPT)
        }
        switch Int32(a[2]) {
        case SO_ERROR: value.pointee = (file as? Stream)?.takeError() ?? 0
        case SO_TYPE: value.pointee = Int32(SOCK_STREAM.rawValue)
        case SO_ACCEPTCONN: value.pointee = file is Listener ? 1 : 0
        case SO_DOMAIN: value.pointee = (file as? Stream)?.family ?? AF_INET
        case SO_SNDBUF, SO_RCVBUF: value.pointee = 65_536
        default: return -Int(ENOPROTOOPT)
        }
        return 0
    }

    private func name(_ number: Int, _ a: UnsafePointer<Int>) -> Int {
        let target = UnsafeMutableRawPointer(bitPattern: a[1])
        let length = UnsafeMutablePointer<UInt32>(bitPattern: a[2])
        switch descriptors[a[0]] {
        case let listener as Listener: listener.address.write(target, length)
        case let stream as Stream:
            if number == Linux.getpeername {
                guard stream.isConnected, !stream.isReset else { return -Int(ENOTCONN) }
                stream.remote.write(target, length)
            } else {
                (stream.isConnected ? stream.local : stream.bound ?? stream.local).write(target, length)
            }
        default: return -Int(ENOTSOCK)
        }
        return 0
    }
}
