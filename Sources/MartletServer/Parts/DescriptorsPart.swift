internal import MartletConfig
internal import MartletCore
internal import MartletProxy

/// How many file descriptors there are for clients, and how many for upstreams.
struct DescriptorsPart: GatewayPart {
    /// A client connection takes a descriptor, and a second one while its request is at an upstream: where the system
    /// allows too few, fewer clients are admitted, and not those that come last refused by the system.
    func lead(_ change: GatewayChange, in gateway: Gateway) {
        let (services, wanted) = (gateway.services, change.configuration.server.limits.connections)
        let plan = services.descriptors.plan
        services.descriptors.adopt(connections: wanted)
        guard plan.clients < wanted else { return }
        services.logger.warning(
            "open file limit too low for server.limits.connections", ("limit", String(plan.limit)),
            ("connections", String(wanted)), ("admitted", String(plan.clients)))
    }
}
