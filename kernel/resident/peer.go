package resident

import (
	"fmt"
	"os"
)

func checkUID(uid int) error {
	if uid != os.Getuid() {
		return fmt.Errorf("the client is of user %d, not %d", uid, os.Getuid())
	}
	return nil
}
