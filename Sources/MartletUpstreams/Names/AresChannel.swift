private import CCares
private import CLinux
internal import MartletCore
internal import MartletIO

/// A channel of c-ares on a service loop; used on the loop only.
@safe final class AresChannel {
    /// Where names are looked up.
    enum Source: String {
        case hostsFile = "f"
        case network = "b"
    }

    /// What c-ares has found for one family.
    typealias Completion = (NameReply.Part) -> Void

    /// For the first attempt at a server; the second waits twice as long.
    private static let milliseconds: Int32 = 1000
    private static let tries: Int32 = 2
    /// Whether the library is initialized; done once per process.
    private static let isStarted = ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS

    private let loop: ServiceLoop
    private var channel: ares_channel?
    private var registrations: [Int32: LoopRegistration] = [:]
    private var timer: LoopTimer?

    /// - Parameter servers: addresses with ports, separated by commas; `nil` for those of `/etc/resolv.conf`.
    init?(_ source: Source, on loop: ServiceLoop, servers: String? = nil) {
        self.loop = loop
        unsafe channel = nil
        guard Self.isStarted else { return nil }
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        guard
            unsafe martlet_ares_open(&channel, source.rawValue, Self.milliseconds, Self.tries, noteDescriptor, context)
                == ARES_SUCCESS
        else { return nil }
        if let servers, unsafe ares_set_servers_ports_csv(channel, servers) != ARES_SUCCESS {
            close()
            return nil
        }
    }

    deinit { close() }

    /// Ends every lookup with a failure, and closes all descriptors.
    func close() {
        guard let open = unsafe channel else { return }
        unsafe channel = nil
        unsafe ares_destroy(open)
        for registration in registrations.values { registration.end() }
        registrations = [:]
        timer?.cancel()
        timer = nil
    }

    /// Looks a name up; the completion may be called before this returns.
    func lookUp(_ host: String, family: Int32, _ completion: @escaping Completion) {
        guard let channel = unsafe channel else { return completion(.failed("the resolver has stopped")) }
        let call = AresCall(completion)
        unsafe martlet_ares_look_up(channel, host, family, receive, Unmanaged.passRetained(call).toOpaque())
        schedule()
    }

    /// c-ares has opened, closed or changed a descriptor.
    fileprivate func watch(_ descriptor: Int32, _ readable: Bool, _ writable: Bool) {
        guard readable || writable else {
            registrations.removeValue(forKey: descriptor)?.end()
            return
        }
        var interest: Readiness = []
        if readable { interest.insert(.readable) }
        if writable { interest.insert(.writable) }
        do throws(IOError) {
            if let known = registrations[descriptor] { return try known.watch(interest) }
            registrations[descriptor] = try loop.register(descriptor, interest) { [weak self] readiness in
                self?.process(descriptor, readiness)
            }
        } catch {
            // Its lookups end at their timeout.
        }
    }

    private func process(_ descriptor: Int32, _ readiness: Readiness) {
        if readiness.has(.loopStopped) { return close() }
        guard let channel = unsafe channel else { return }
        let (readable, writable) = (readiness.has(.input), readiness.has([.writable, .broken]))
        unsafe martlet_ares_process(channel, descriptor, readable ? 1 : 0, writable ? 1 : 0)
        schedule()
    }

    /// Waits for the next timeout of a query.
    private func schedule() {
        timer?.cancel()
        timer = nil
        guard let channel = unsafe channel else { return }
        let milliseconds = unsafe martlet_ares_milliseconds(channel)
        guard milliseconds >= 0 else { return }
        timer = loop.schedule(after: .milliseconds(milliseconds)) { [weak self] in
            guard let self, let channel = unsafe self.channel else { return }
            unsafe martlet_ares_process_timeouts(channel)
            schedule()
        }
    }
}

/// The completion of a lookup, which c-ares holds until it is called.
private final class AresCall {
    let completion: AresChannel.Completion

    init(_ completion: @escaping AresChannel.Completion) { self.completion = completion }
}

// The context is the channel, which destroys its handle before it ends.
private func noteDescriptor(
    _ context: UnsafeMutableRawPointer?, _ descriptor: Int32, _ readable: Int32, _ writable: Int32
) {
    guard let context = unsafe context else { return }
    let channel = unsafe Unmanaged<AresChannel>.fromOpaque(context).takeUnretainedValue()
    channel.watch(descriptor, readable != 0, writable != 0)
}

// c-ares calls back once for each lookup, when it is destroyed at the latest.
private func receive(
    _ context: UnsafeMutableRawPointer?, _ status: Int32, _ timeouts: Int32,
    _ info: UnsafeMutablePointer<ares_addrinfo>?
) {
    guard let context = unsafe context else { return }
    let call = unsafe Unmanaged<AresCall>.fromOpaque(context).takeRetainedValue()
    defer { unsafe ares_freeaddrinfo(info) }
    call.completion(unsafe part(status, info))
}

private func part(_ status: Int32, _ info: UnsafeMutablePointer<ares_addrinfo>?) -> NameReply.Part {
    switch status {
    case ARES_SUCCESS: break
    case ARES_ENOTFOUND, ARES_ENODATA, ARES_ENONAME:
        return .absent(status == ARES_ENOTFOUND ? "the name does not exist" : "the name has no address")
    case ARES_ETIMEOUT: return .failed("no name server responded in time")
    default: return .failed(unsafe String(cString: ares_strerror(status)).lowercased())
    }
    guard let info = unsafe info else { return .absent("the name has no address") }
    var addresses: [SocketEndpoint] = []
    var validity = Int32.max
    var node = unsafe info.pointee.nodes
    while let entry = unsafe node {
        if let address = unsafe entry.pointee.ai_addr {
            let bytes = unsafe UnsafeRawBufferPointer(start: address, count: Int(entry.pointee.ai_addrlen))
            addresses.append(SocketEndpoint(sockaddr: unsafe Array(bytes)))
        }
        validity = min(validity, unsafe entry.pointee.ai_ttl)
        unsafe node = entry.pointee.ai_next
    }
    var alias = unsafe info.pointee.cnames
    while let entry = unsafe alias {
        validity = min(validity, unsafe entry.pointee.ttl)
        unsafe alias = entry.pointee.next
    }
    guard !addresses.isEmpty else { return .absent("the name has no address") }
    return .found(addresses, validity: .seconds(max(validity, 0)))
}
