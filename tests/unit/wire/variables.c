#include "t.h"

#include "wire/variables.h"

T_TEST(variables_of_the_programs)
{
    T_OK(variable_common("FIRN_STORE") && variable_common("FIRN_FENCING_TOKEN"));
    T_OK(variable_common("FIRN_URL") && variable_common("FIRN_CA"));
    T_OK(variable_common("FIRN_CERT") && variable_common("FIRN_KEY"));
    T_OK(variable_common("FIRN_TEST_QUICK"));
    T_OK(!variable_common("FIRN_TEST") && !variable_common("FIRN_STOR"));
    T_OK(variable_of_firnd("FIRN_LISTEN_HOME") && variable_of_firnd("FIRN_NAME"));
    T_OK(!variable_of_firnd("FIRN_NAMES") && !variable_of_firnd("FIRN_LISTN_HOME"));
    T_STR(variable_nearest("FIRN_STROE"), "FIRN_STORE");
    T_STR(variable_nearest("FIRN_TOKENS"), "FIRN_TOKEN");
    T_OK(!variable_nearest("FIRN_WHATEVER"));
}

T_TEST(variables_of_service_links)
{
    static const struct {
        const char *name, *value;
        bool link;
    } row[] = {
        { "FIRN_SERVICE_HOST", "10.96.0.7", true },
        { "FIRN_SERVICE_PORT", "9000", true },
        { "FIRN_SERVICE_PORT_HTTP", "9000", true },
        { "FIRN_PORT", "tcp://10.96.0.7:9000", true },
        { "FIRN_PORT", "9000", false }, /* a person who expects it to be a setting */
        { "FIRN_PORT_9000_TCP", "tcp://10.96.0.7:9000", true },
        { "FIRN_PORT_9000_TCP_ADDR", "10.96.0.7", true },
        { "FIRN_PORT_9000_TCP_PORT", "9000", true },
        { "FIRN_PORT_9000_TCP_PROTO", "tcp", true },
        { "FIRN_PORT_53_UDP", "udp://10.96.0.7:53", true },
        { "FIRN_PORT_9000", "9000", false },
        { "FIRN_PORT_X_TCP", "", false },
        { "FIRN_PORT_9000_TCPX", "", false },
        { "FIRN_HOME_SERVICE_HOST", "10.96.0.7", true }, /* a service named firn-home */
        { "FIRN_HOME_PORT_9000_TCP_ADDR", "10.96.0.7", true },
        { "FIRN_HOME_PORT", "tcp://10.96.0.7:9000", true },
        { "FIRN_SERVICE", "x", false },
        { "FIRN_", "x", false },
    };
    for (size_t i = 0; i < T_LEN(row); i++)
        T_EQ(variable_of_service(row[i].name, row[i].value), row[i].link, "%s=%s", row[i].name,
             row[i].value);
}
